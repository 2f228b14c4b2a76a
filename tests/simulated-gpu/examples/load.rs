use std::time::Instant;
use simulated_gpu::{machine::*, program::*};
struct N; impl Outside for N { fn set_condition(&mut self,_:u64,_:u32)->bool{false} }
fn main(){ let mut bad=std::collections::BTreeMap::new(); let (mut n,mut k)=(0,0); let t=Instant::now();
 for f in std::env::args().skip(1){ let text=std::fs::read_to_string(&f).unwrap(); let mut m=Memory::new(1<<30,true); n+=1;
  match Program::load(&text,&mut m,100){ Ok(p)=>{k+=p.kernels().len();}, Err(e)=>{ *bad.entry(e.to_string().splitn(2,": ").nth(1).unwrap_or("").to_owned()).or_insert(0)+=1; if bad.len()<20 {println!("{f}: {e}");} } } }
 println!("{n} files {k} kernels {:?}",t.elapsed()); for (b,c) in bad {println!("{c} {b}");} }
