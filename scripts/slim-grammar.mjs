// Takes out of the generated grammar what only writers of grammars need: its text, and where each expression stands in
// it: more than half of the file, and 12 kB of what a browser loads. What is left is built when a text is first read, not
// when it is imported: a process that reads none, or whose programs are in the cache, does without.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'

const folder = resolve(dirname(fileURLToPath(import.meta.url)), '../grammar')

const isPlace = (x) => x !== null && typeof x === 'object' && ('sourceInterval' in x || 'source' in x)

/** A recipe of Ohm, with nothing where it tells a place. */
const slim = (recipe) => {
  if (Array.isArray(recipe)) return recipe.map((x) => (isPlace(x) ? null : slim(x)))
  if (recipe === null || typeof recipe !== 'object') return recipe
  return Object.fromEntries(Object.entries(recipe).map(([name, x]) => [name, slim(x)]))
}

for (const file of readdirSync(folder).filter((f) => f.endsWith('.ohm-bundle.js'))) {
  const path = join(folder, file)
  const text = readFileSync(path, 'utf8')
  const [start, end] = [text.indexOf('makeRecipe(') + 'makeRecipe('.length, text.lastIndexOf(');export')]
  const recipe = slim(JSON.parse(text.slice(start, end)))
  writeFileSync(
    path,
    `import {makeRecipe} from 'ohm-js';let made;const grammar=()=>made??=makeRecipe(${JSON.stringify(recipe)});
export default {match:(...args)=>grammar().match(...args),createSemantics:()=>grammar().createSemantics(),
with:(name,rules)=>makeRecipe(['grammar',null,name,grammar(),null,rules])};\n`,
  )
}
