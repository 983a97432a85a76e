/** Static rules for the sources: import layers, no operator names in src/, statement builders, one writer of files, shipped data. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { violations } from '../scripts/layers.mjs'
import { AXES, type AxisWord, levelProperties } from '../src/ast/nodes/axis-kinds.ts'
import { TIME_LIMIT } from './support/time-limit.ts'

const files = (dir: string): string[] =>
  readdirSync(dir, { withFileTypes: true }).flatMap((e) =>
    e.isDirectory() ? files(join(dir, e.name)) : [join(dir, e.name)],
  )

test('imports follow the layers', () => {
  expect(violations()).toEqual([])
})

test('src/ contains no operator names', () => {
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

test('storage of a level is read from its declaration, not from the name of its axis kind', () => {
  // `run` is also the name of other things, and `Engine['bitmap']` that of an operation.
  const stored = Object.keys(AXES).filter((kind) => levelProperties(kind as AxisWord) && kind !== 'run')
  const pattern = new RegExp(`(?<!\\[)'(?:${stored.join('|')})'`)
  const found = files('src').filter(
    (f) =>
      f.endsWith('.ts') &&
      f !== 'src/ir/coordinates/axis.ts' &&
      !f.startsWith('src/levels/') &&
      pattern.test(readFileSync(f, 'utf8')),
  )
  expect(found).toEqual([])
})

test('no property is derived from an identifier or from printed code', () => {
  // Offsets are known by their buffer, levels by their hardware index (`ir/instructions/hardware-axes.ts`), equal data by `sameData`.
  const facts =
    /(?:starts|ends)With\('(?:_(?:indptr|indices|mask|count)|thread|block)'\)|JSON\.stringify\([^)]*\) [!=]==|print\w+\([^)]*\) [!=]==/
  const found = files('src').filter((f) => facts.test(readFileSync(f, 'utf8')))
  expect(found).toEqual([])
})

test('statements are built by constructors', () => {
  // `ir/statements/statement-builders.ts` has them, and `stmt` checks what it is given; those of Stage I `ir/coordinates/stage1-tree.ts`.
  const literal =
    /(?<!readonly )kind: '(?:iterate|assign|for|if|while|store|reduce|alloc|let|barrier|fill|vector_load|vector_store|instr)'/
  const apart = /^src\/(?:ir\/\w+\/(?:statement-builders|stage1-tree|instr-call)\.ts|ast\/|reference\/)/
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

test('files are written by `replace-file.ts` only', () => {
  const writes =
    /^(?:appendFile|copyFile|cp|createWriteStream|link|open|rename|symlink|truncate|write|writeFile|writev)(?:Sync)?$/
  // `cache/replace-file.ts` is that function. Others have a reason of their own to name a call that can write:
  const allowed: Readonly<Record<string, readonly string[]>> = {
    // reading,
    'src/io/node-files.ts': ['open'],
    'src/io/package/program-text.ts': ['open'],
    // a last message on standard error,
    'src/cli/output/io.ts': ['writeSync'],
    // folders that appear whole,
    'src/cli/prune/folder.ts': ['renameSync'],
    'src/runtime/webgpu/swiftshader.ts': ['renameSync', 'writeFileSync'],
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

test('the verifiers are loaded only on demand', () => {
  const loaded = new Set<string>()
  const visit = (file: string): void => {
    if (loaded.has(file)) return
    loaded.add(file)
    for (const [, path] of readFileSync(file, 'utf8').matchAll(
      /^(?:import|export) (?!type )[^;]*?from '(\.[^']+\.ts)'/gm,
    ))
      visit(join(file, '..', path!))
  }
  for (const entry of ['src/node.ts', 'src/api/programs/program.ts', 'src/cli/index.ts']) visit(entry)
  expect(loaded.size).toBeGreaterThan(100)
  expect([...loaded].filter((f) => /^src\/(verifiers|interpret)\//.test(f))).toEqual([])
})

test('comments and pages name files that exist', () => {
  const all = ['src', 'test', 'bench', 'scripts', 'grammar'].flatMap(files).map((f) => `/${f}`)
  const named = [...files('src'), ...files('docs').filter((f) => f.endsWith('.md'))].flatMap((f) =>
    [...readFileSync(f, 'utf8').matchAll(/`([\w/.-]+\/[\w.-]+\.ts|[\w-]+(?:-[\w]+)+\.ts)`/g)].map(
      ([, name]) => [f, name!] as const,
    ),
  )
  expect(named.length).toBeGreaterThan(100)
  expect(named.filter(([, name]) => !all.some((f) => f.endsWith(`/${name}`)))).toEqual([])
})

test('mutants that change no result are listed with files that exist', () => {
  const judged: readonly { readonly file: string }[] = JSON.parse(
    readFileSync('scripts/mutate/judged.json', 'utf8'),
  )
  const all = new Set(files('src'))
  expect(judged.length).toBeGreaterThan(0)
  expect(judged.map((j) => j.file).filter((f) => !all.has(f))).toEqual([])
})

test('the times of tests are of files that exist', () => {
  const listed = readFileSync('test/support/costs.txt', 'utf8').trim().split('\n')
  expect(listed.filter((line) => !/^\d+ test\/.+\.test\.ts$/.test(line))).toEqual([])
  const all = new Set(files('test'))
  expect(listed.map((line) => line.split(' ')[1]!).filter((f) => !all.has(f))).toEqual([])
})

test('no test has a shorter time limit than `TIME_LIMIT`', () => {
  const limits = /\}, ([\d_]+)\)$|^ *([\d_]+),\n *\)$/gm
  const short = files('test').flatMap((f) =>
    [...readFileSync(f, 'utf8').matchAll(limits)]
      .map(([, a, b]) => Number((a ?? b)!.replaceAll('_', '')))
      .filter((limit) => limit >= 10_000 && limit < TIME_LIMIT)
      .map((limit) => `${f}: ${limit}`),
  )
  expect(short).toEqual([])
})
