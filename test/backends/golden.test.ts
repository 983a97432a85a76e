/**
 * The texts of a few kernels under a few schedules, whole: what a change of a backend does to them is seen in its
 * diff. `UPDATE_GOLDEN=1 npx vitest run test/backends/golden` writes them anew.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { emit, type ModuleText, TARGET_NAMES, TARGETS } from '../../src/backends/targets/index.ts'
import type { Kernel3 } from '../../src/ir/statements/loops.ts'
import { packBuffers } from '../../src/lower/launches/buffer-packing.ts'
import { devices, type Kernel, load } from '../../src/node.ts'
import { compileCuda, noNvcc } from '../support/nvcc.ts'

const folder = new URL('golden/', import.meta.url)
const update = process.env.UPDATE_GOLDEN === '1'

const ROWS = `kernel rows(m: size, n: size, d: size) {
  axis i = dense_fixed(m)
  axis j = sparse_variable(i, n)
  axis jd = dense_fixed(n)
  axis f = dense_fixed(d)
  buffer A: f32[i, j] in
  buffer B: f32[jd, f] in
  buffer C: f32[i, f] out
  iterate sum [i, j, f] as SRS { C[i, f] += A[i, j] * B[j, f] }
}
format blocks(b) over (i, j) {
  axis io = dense_fixed(ceildiv(i, b))
  axis jo = sparse_variable(io, ceildiv(j, b))
  axis ii = dense_fixed(b)
  axis ji = dense_fixed(b)
  map (i, j) -> (i / b, j / b, i % b, j % b)
  inverse (io, jo, ii, ji) -> (io * b + ii, jo * b + ji)
}
schedule rows.gpu(width = 32) {
  split f by width -> (fo, fi)
  reorder (i, fo, fi, j)
  cache_write C at fi in register
  bind i to block.x, fo to block.y, fi to thread.x
}
schedule rows.blocked(b = 4) {
  A as blocks(b)
  bind io to block.x
}`

const MATMUL = (inner: number) => `kernel tile(m: size) {
  axis i = dense_fixed(m)
  axis c = dense_fixed(${inner})
  axis o = dense_fixed(16)
  buffer x: f32[i, c] in
  buffer w: f32[c, o] in
  buffer y: f32[i, o] out
  iterate body [i, o, c] as SSR { y[i, o] += x[i, c] * w[c, o] }
}`

const SCATTER = `kernel scatter(m: size, n: size) {
  axis i = dense_fixed(m)
  axis j = sparse_variable(i, n)
  axis c = dense_fixed(n)
  buffer A: f32[i, j] in
  buffer top: f32[c] out
  buffer count: i32[c] out
  iterate body [i, j] as RR {
    top[j] max= A[i, j]
    count[j] += 1
  }
}`

const NARROW = `kernel narrow(n: size, limit: f16, on: bool) {
  axis i = dense_fixed(n)
  buffer h: f16[i] in
  buffer b: i8[i] in
  buffer flag: bool[i] out
  buffer half: bf16[i] out
  buffer byte: u8[i] out
  iterate body [i] as S {
    flag[i] = on and h[i] < limit
    half[i] = bf16(f32(h[i]) * f32(b[i]))
    byte[i] = u8(exp(f32(b[i])))
  }
}`

const SEARCH = `kernel search(m: size, n: size) {
  axis i = dense_fixed(m)
  axis j = sparse_variable(i, n)
  axis k = sparse_variable(i, n)
  axis c = dense_fixed(n)
  buffer A: f32[i, j] in
  buffer B: f32[i, k] in
  buffer C: f32[i, c] out
  iterate body [i, c] as SS { C[i, c] = A[i, c] + B[i, c] }
}`

/** A kernel's plan for a target. */
type Case = (target: ModuleText['target']) => Promise<Kernel3>

const kernel =
  (text: string, change: (k: Kernel) => Kernel = (k) => k): Case =>
  async (target) =>
    change((await load(text)).kernel()).compilation.planFor(target === 'cuda' ? {} : TARGETS[target].lowering)

const CASES: Readonly<Record<string, Case>> = {
  rows: kernel(ROWS),
  'rows-gpu': kernel(ROWS, (k) => k.schedule('gpu')),
  'rows-peeled': kernel(ROWS, (k) => k.reorder('i', 'f', 'j').peel('j')),
  'rows-blocked': kernel(ROWS, (k) => k.schedule('blocked')),
  tile: kernel(MATMUL(64), (k) => k.bind({ i: 'block.x', o: 'thread.x' }).cacheRead('x', 'i', 'shared')),
  'tile-dynamic': kernel(MATMUL(16384), (k) =>
    k.bind({ i: 'block.x', o: 'thread.x' }).cacheRead('x', 'i', 'shared'),
  ),
  scatter: kernel(SCATTER, (k) => k.atomic('top').atomic('count').bind({ i: 'block.x' })),
  narrow: kernel(NARROW, (k) => k.parallel()),
  packed: async (target) => packBuffers(await kernel(SEARCH, (k) => k.parallel())(target), 3).plan,
}

const textOf = (plan: Kernel3, target: ModuleText['target']): string =>
  emit(plan, target)
    .map((m) => m.text.trimEnd())
    .join('\n\n// ----\n\n')
    .concat('\n')

for (const [name, make] of Object.entries(CASES))
  for (const target of TARGET_NAMES)
    test(`${name} for ${target}`, async () => {
      const text = textOf(await make(target), target)
      const file = new URL(`${name}${TARGETS[target].extension}`, folder)
      if (update) {
        mkdirSync(folder, { recursive: true })
        writeFileSync(file, text)
      }
      expect(existsSync(file), `${name}: run with UPDATE_GOLDEN=1`).toBe(true)
      expect(text).toBe(readFileSync(file, 'utf8'))
    })

test('no golden file is unused', () => {
  const known = Object.keys(CASES).flatMap((n) => Object.values(TARGETS).map((t) => `${n}${t.extension}`))
  expect(readdirSync(folder).sort()).toEqual(known.sort())
})

test('shared memory beyond 48 KB is requested at launch', async () => {
  const [module] = emit(await CASES['tile-dynamic']!('cuda'), 'cuda')
  expect(module!.entries.map((e) => e.sharedBytes)).toEqual([4 * 16384])
  expect(emit(await CASES.tile!('cuda'), 'cuda')[0]!.entries[0]!.sharedBytes).toBe(0)
})

test('every js and wgsl text compiles', async () => {
  const all = { js: await devices.cpu(), wgsl: await devices.webgpu() }
  for (const [name, make] of Object.entries(CASES))
    for (const target of ['js', 'wgsl'] as const) {
      // More shared memory than the software GPU has.
      if (name === 'tile-dynamic' && target === 'wgsl') continue
      for (const m of emit(await make(target), target)) (await all[target].compile(m)).release()
    }
  await all.wgsl.dispose()
})

test.skipIf(noNvcc)('every cuda text compiles', async () => {
  const texts = await Promise.all(
    Object.entries(CASES).map(async ([, make], k) => {
      const plan = await make('cuda')
      return `namespace n${k} {\n${textOf(plan, 'cuda').replaceAll(`${plan.name}_`, `${plan.name}${k}_`)}\n}`
    }),
  )
  expect(compileCuda([texts.join('\n')])).toBe('')
})
if (noNvcc) console.log(`skipped: compiling CUDA: ${noNvcc}`)
