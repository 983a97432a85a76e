// Shortens the generated grammar. Its text, and the place of each expression in it, serve only authors of grammars: they are more than half
// of the file. The rest is written compactly: `'x` is the terminal x, `x` an application, `["<", "x", …]` one with arguments, and arrays
// without `null` are the other nodes. The grammar is built when a text is first parsed, not when it is imported.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'

const folder = resolve(dirname(fileURLToPath(import.meta.url)), '../grammar')

const OPERATORS = ['seq', 'alt', 'star', 'plus', 'opt', 'not', 'lookahead', 'lex']

/** An expression of a recipe in compact form. */
function compact([operator, _, ...operands]) {
  if (operator === 'terminal') return `'${operands[0]}`
  if (operator === 'app')
    return operands[1].length > 0 ? ['<', operands[0], ...operands[1].map(compact)] : operands[0]
  if (operator === 'param' || operator === 'range') return [operator, ...operands]
  if (!OPERATORS.includes(operator)) throw new Error(`expand() of the grammar has no case for ${operator}`)
  return [operator, ...operands.map(compact)]
}

function compactRule([kind, _, description, formals, body]) {
  if (kind !== 'define' && kind !== 'override')
    throw new Error(`rule() of the grammar has no case for ${kind}`)
  const isPlain = kind === 'define' && !description && formals.length === 0
  return isPlain ? compact(body) : [kind, description, formals, compact(body)]
}

for (const file of readdirSync(folder).filter((f) => f.endsWith('.ohm-bundle.js'))) {
  const path = join(folder, file)
  const text = readFileSync(path, 'utf8')
  const [first, last] = [text.indexOf('makeRecipe(') + 'makeRecipe('.length, text.lastIndexOf(');export')]
  const [, , name, base, start, rules] = JSON.parse(text.slice(first, last))
  const short = Object.fromEntries(Object.entries(rules).map(([rule, x]) => [rule, compactRule(x)]))
  writeFileSync(
    path,
    `import {makeRecipe} from 'ohm-js';
const expand=(x)=>typeof x==='string'?x[0]==="'"?['terminal',null,x.slice(1)]:['app',null,x,[]]:
x[0]==='<'?['app',null,x[1],x.slice(2).map(expand)]:
[x[0],null,...(/^param|^range/.test(x[0])?x.slice(1):x.slice(1).map(expand))];
const rule=(x)=>/^define|^override/.test(x[0])?[x[0],null,x[1],x[2],expand(x[3])]:['define',null,null,[],expand(x)];
const recipe=()=>['grammar',null,${[name, base, start].map((x) => JSON.stringify(x)).join(',')},
Object.fromEntries(Object.entries(${JSON.stringify(short)}).map(([name,x])=>[name,rule(x)]))];
let made;const grammar=()=>made??=makeRecipe(recipe());
export default {match:(...args)=>grammar().match(...args),createSemantics:()=>grammar().createSemantics(),
with:(name,rules)=>makeRecipe(['grammar',null,name,grammar(),null,rules])};\n`,
  )
}
