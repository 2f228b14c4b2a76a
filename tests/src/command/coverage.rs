//! `xla-tests coverage`: prints operations by element type and platform as a table, or writes them as a page.

use std::path::PathBuf;
use std::process::ExitCode;

use xla_hlo::ElementType;
use xla_tests::coverage::{Status, Table, page};

use super::Outcome;

#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Only this platform; can be repeated.
    #[arg(long)]
    platform: Vec<String>,
    /// Only operations whose name contains this.
    #[arg(long, default_value = "")]
    filter: String,
    /// Also write an HTML page.
    #[arg(long)]
    html: Option<PathBuf>,
}

pub fn run(arguments: Arguments) -> Outcome {
    let registry = xla::registry();
    let platforms = match arguments.platform.is_empty() {
        true => vec!["cpu".to_string(), "interpreter".to_string()],
        false => arguments.platform,
    };
    let mut tables = Vec::new();
    for platform in platforms {
        let table = Table::new(&registry, &platform, &arguments.filter)?;
        print(&table);
        tables.push(table);
    }
    if let Some(path) = arguments.html {
        std::fs::write(&path, page(&tables))?;
        println!("{}", path.display());
    }
    let wrong = |table: &Table| table.cells().any(|(.., status)| matches!(status, Status::Wrong(_)));
    Ok(if tables.iter().any(wrong) { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn print(table: &Table) {
    let names: Vec<&str> = ElementType::ALL.iter().map(|ty| ty.name()).collect();
    let tallest = names.iter().map(|name| name.len()).max().unwrap_or(0);
    println!(
        "\n{}: # native, h host, - refused, d device only, ! wrong, ? missing, blank: not in the language\n",
        table.platform
    );
    for line in 0..tallest {
        let letters = names.iter().map(|name| name.chars().nth(line).unwrap_or(' '));
        println!("{:26}{}", "", letters.map(|c| format!("{c} ")).collect::<String>());
    }
    for row in &table.rows {
        let marks: String = row.statuses.iter().map(|status| format!("{} ", mark(status))).collect();
        println!("{:26}{}", row.opcode.name(), marks.trim_end());
    }
    let count = |is: fn(&Status) -> bool| table.cells().filter(|(.., status)| is(status)).count();
    println!(
        "\n{}: {} native, {} by the host, {} refused, {} device only, {} wrong, {} missing",
        table.platform,
        count(|s| matches!(s, Status::Native)),
        count(|s| matches!(s, Status::Fallback)),
        count(|s| matches!(s, Status::Refused(_))),
        count(|s| matches!(s, Status::DeviceOnly)),
        count(|s| matches!(s, Status::Wrong(_))),
        count(|s| matches!(s, Status::Missing)),
    );
    for (opcode, ty, status) in table.cells() {
        if let Status::Wrong(how) | Status::Refused(how) = status {
            println!("{opcode} of {ty}: {how}");
        }
    }
}

fn mark(status: &Status) -> char {
    match status {
        Status::NotAllowed => ' ',
        Status::DeviceOnly => 'd',
        Status::Native => '#',
        Status::Fallback => 'h',
        Status::Expected(_) => 'x',
        Status::Refused(_) => '-',
        Status::Wrong(_) => '!',
        Status::Missing => '?',
    }
}
