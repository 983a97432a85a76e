/** Rules of the house: imports run one way, and the compiler knows no operator. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { violations } from '../scripts/layers.mjs'
import { AXES, type AxisWord, levelFormat } from '../src/ast/axis-kinds.ts'

const files = (dir: string): string[] =>
  readdirSync(dir, { withFileTypes: true }).flatMap((e) =>
    e.isDirectory() ? files(join(dir, e.name)) : [join(dir, e.name)],
  )

test('imports run one way', () => {
  expect(violations()).toEqual([])
})

test('no operator is named in src', () => {
  const kernels = readdirSync('kernels').flatMap((f) => (f.endsWith('.spt') ? [f.slice(0, -4)] : []))
  const declared = files('kernels').flatMap((f) =>
    [...readFileSync(f, 'utf8').matchAll(/^(?:kernel|instr|memory)\s+(\w+)/gm)].map((m) => m[1]!),
  )
  const ordinary = new Set([
    'formats',
    // Where a message says that formats are to be found.
    'formats-composed',
    'formats-tensors',
    'scatter',
    'gather',
    'transpose',
    'copy',
    'narrow',
    'pool',
    'fused',
    'gathered',
    'hypergraph',
    'every',
    'lanes',
    'swizzled',
    // Patterns that weights are pruned in; also the kernels that run such layers.
    'tile-wise',
    'tile-element-wise',
    'tile-vector-wise',
    // Operations on whole columns; also an instruction of `kernels/`.
    'bulk',
  ])
  const words = [...new Set([...kernels, ...declared].map((w) => w.toLowerCase()))].filter(
    (w) => !ordinary.has(w),
  )
  expect(words.length).toBeGreaterThan(0)
  const pattern = new RegExp(
    `(?<![a-z])(${[...words, 'spmm', 'spmv', 'sddmm', 'softmax', 'gemm', 'mttkrp', 'rgcn', 'attention'].join('|')})(?![a-z])`,
    'i',
  )
  const found = files('src')
    .filter((f) => f.endsWith('.ts'))
    .flatMap((f) =>
      readFileSync(f, 'utf8')
        .split('\n')
        .flatMap((line, k) => (pattern.test(line) ? [`${f}:${k + 1}: ${line.trim()}`] : [])),
    )
  expect(found).toEqual([])
})

test('how a level is stored is asked of its declaration, not of the name of its kind', () => {
  const stored = Object.keys(AXES).filter((kind) => levelFormat(kind as AxisWord))
  const pattern = new RegExp(`'(?:${stored.join('|')})'`)
  const found = files('src').filter(
    (f) => f.endsWith('.ts') && f !== 'src/ir/axis.ts' && pattern.test(readFileSync(f, 'utf8')),
  )
  expect(found).toEqual([])
})

test('no fact is read from a name', () => {
  // Offsets are known by their buffer, levels by their hardware index (`ir/hardware-axes.ts`), equal data by `sameData`.
  const facts =
    /(?:starts|ends)With\('(?:_(?:indptr|indices|mask|count)|thread|block)'\)|JSON\.stringify\([^)]*\) [!=]==|print\w+\([^)]*\) [!=]==/
  const found = files('src').filter((f) => facts.test(readFileSync(f, 'utf8')))
  expect(found).toEqual([])
})

test('statements are made by constructors', () => {
  // `ir/statement-builders.ts` has them, and `stmt` checks what it is given; those of Stage I `ir/stage1-builders.ts`.
  const literal =
    /(?<!readonly )kind: '(?:iterate|assign|for|if|while|store|reduce|alloc|let|barrier|fill|vector_load|vector_store|instr)'/
  const apart = /^src\/(?:ir\/(?:statement-builders|stage1-builders|instr-call)\.ts|ast\/|reference\/)/
  const found = files('src').flatMap((f) =>
    apart.test(f)
      ? []
      : readFileSync(f, 'utf8')
          .split('\n')
          .flatMap((line, k) =>
            literal.test(line) && !line.includes('const mode =') ? [`${f}:${k + 1}: ${line.trim()}`] : [],
          ),
  )
  expect(found).toEqual([])
})

test('files are written by one function', () => {
  const writes =
    /^(?:appendFile|copyFile|cp|createWriteStream|link|open|rename|symlink|truncate|write|writeFile|writev)(?:Sync)?$/
  // `cache/replace-file.ts` is that function. Others have a reason of their own to name a call that can write:
  const allowed: Readonly<Record<string, readonly string[]>> = {
    // reading,
    'src/io/node-files.ts': ['open'],
    'src/io/program-text.ts': ['open'],
    // a last message on standard error,
    'src/cli/io.ts': ['writeSync'],
    // folders that appear whole,
    'src/cli/prune/folder.ts': ['renameSync'],
    'src/runtime/swiftshader.ts': ['renameSync', 'writeFileSync'],
    // locks, which are not outputs.
    'src/search/measuring/device-lock.ts': ['link', 'rename', 'writeFile'],
  }
  const found = files('src')
    .filter((f) => f.endsWith('.ts') && f !== 'src/cache/replace-file.ts')
    .flatMap((f) =>
      [
        ...readFileSync(f, 'utf8').matchAll(
          /import (?:\{([^}]*)\}|\* as \w+|\w+) from '(?:node:)?fs(?:\/promises)?'/g,
        ),
      ].flatMap(([whole, names]) =>
        (names?.split(',') ?? [whole])
          .map((n) => n.trim().replace(/ as .*/, ''))
          .filter((n) => n === whole || (writes.test(n) && !allowed[f]?.includes(n)))
          .map((n) => `${f}: ${n}`),
      ),
    )
  expect(found).toEqual([])
})

test('who does not ask for the verifiers does not load them', () => {
  const loaded = new Set<string>()
  const visit = (file: string): void => {
    if (loaded.has(file)) return
    loaded.add(file)
    for (const [, path] of readFileSync(file, 'utf8').matchAll(
      /^(?:import|export) (?!type )[^;]*?from '(\.[^']+\.ts)'/gm,
    ))
      visit(join(file, '..', path!))
  }
  for (const entry of ['src/node.ts', 'src/cli/index.ts']) visit(entry)
  expect(loaded.size).toBeGreaterThan(100)
  expect([...loaded].filter((f) => /^src\/(verifiers|interpret)\//.test(f))).toEqual([])
})

test("plain tests run once: the library's test repeats each as often as a law", () => {
  const found = files('test').filter((f) =>
    /import \{[^}]*\b(test|it)\b(?! as (law|prop)\b)[^}]*\} from '@fast-check\/vitest'/.test(
      readFileSync(f, 'utf8'),
    ),
  )
  expect(found).toEqual([])
})

test('what benchmarks of the package read is shipped with it', () => {
  const shipped: string[] = JSON.parse(readFileSync('package.json', 'utf8')).files
  const folders = shipped.map((s) => s.split('/*')[0]!)
  const read = ['src', 'bench/gpu', 'bench/peers']
    .flatMap(files)
    .filter((f) => f.endsWith('.ts'))
    .flatMap((f) => [...readFileSync(f, 'utf8').matchAll(/packageFile\(['`]([^'`$]+)/g)].map((m) => m[1]!))
  expect(read.length).toBeGreaterThan(2)
  expect(read.filter((f) => !folders.some((s) => `${f}/`.startsWith(`${s}/`)))).toEqual([])
})
