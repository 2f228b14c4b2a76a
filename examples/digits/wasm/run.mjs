// node run.mjs FOLDER PICTURE...: the digits that pictures show (PGM as text, 8 by 8, white paper).

import { readFileSync } from "node:fs";
import { Program } from "./program.mjs";

const [folder, ...paths] = process.argv.slice(2);
const description = JSON.parse(readFileSync(`${folder}/digits.json`, "utf8"));
const program = await Program.load(readFileSync(`${folder}/digits.wasm`), description);
for (const path of paths) {
  const text = readFileSync(path, "utf8").replace(/#.*/g, "");
  const [magic, width, height, white, ...pixels] = text.split(/\s+/).filter((word) => word !== "");
  if (magic !== "P2" || width !== "8" || height !== "8" || pixels.length !== 64) {
    console.error(`${path} is no picture of 8 by 8 pixels as PGM text (P2)`);
    process.exit(2);
  }
  program.arrays.pixels.set(pixels.map((value) => ((white - value) * 16) / white));
  program.execute();
  const scores = program.arrays.result;
  console.log(`${path} shows a ${scores.indexOf(Math.max(...scores))}`);
}
