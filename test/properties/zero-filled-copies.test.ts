/** Copies by instructions that fill with zeros what is not there are those of the nests below them, and read nothing outside. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { coords, dense } from '../../src/api/inputs/tensors.ts'
import { parseProgram } from '../../src/api/programs/program.ts'
import { runLoops } from '../../src/api/stages/stage-check.ts'
import { reference } from '../../src/reference/index.ts'
import { bindInputs } from '../../src/run/bind/index.ts'
import { referenceInputs } from '../../src/run/bind/results/reference-inputs.ts'
import type { Compilation } from '../../src/run/compile/compile.ts'
import { createCpuDevice } from '../../src/runtime/cpu/device.ts'
import type { Device } from '../../src/runtime/device.ts'
import { createNodeWebGpu } from '../../src/runtime/webgpu/node.ts'
import { costly } from '../support/cases.ts'
import { refusal } from '../support/refusal.ts'
import { panelsText, SORTED_TILES } from '../support/tile-formats.ts'
import { agreeOnDevice } from './agree.ts'

const copied = (at: string): string =>
  `$[for k from 0 to 1: if ($there == 1) { $D[$D.index(k)] = $S[${at}]; } else { $D[$D.index(k)] = 0; }]`
const plain = '$[for k from 0 to 1: $D[$D.index(k)] = $S[$S.index(k)];]'
/** The text reads its place before it asks whether there is one: the place has to exist. */
const TEXTS = ['js', 'wgsl']
  .map(
    (t) => `${t} \`${plain}\`
  filled ${t} \`${t === 'js' ? 'if (!($S.index(1) < $S.length)) throw new Error("outside"); ' : ''}${copied('$S.index(k)')}\``,
  )
  .join('\n  ')

/** A product whose A can come in panels. */
const PANELS = `${panelsText()}
kernel k(m: size, k: size, n: size) {
  axis i = dense_fixed(m)
  axis p = sparse_variable(i, k)
  axis pd = dense_fixed(k)
  axis f = dense_fixed(n)
  buffer A: i32[i, p] in
  buffer X: i32[pd, f] in
  buffer C: i32[i, f] out
  iterate sum [i, p, f] as SRS { C[i, f] += A[i, p] * X[p, f] }
}`

const PROGRAM = `instr pair(D: i32[2] in shared, S: i32[2] in global) {
  iterate copy [k] as S { D[k] = S[k] }
  ${TEXTS}
}
${PANELS}
schedule k.s(g, s, fs, stages) {
  A as panels(g, s)
  require n % (2 * fs) == 0
  split f by 2 * fs -> (fo, fi)
  reorder (io, fo, go, ii, fi, ko)
  bind io to block.x, fo to block.y, ii to thread.x
  cache_read A at go in shared padded 0 -> As
  cache_read X at go in shared padded 0 -> Xs
  split Xs.fi by 2 -> (fv, fl)
  tensorize fl with pair
  pipeline go by stages
}`

/** Rows are gathered from where a table says, which is read for rows that there are alone. */
const SORTED = `${PROGRAM.slice(0, PROGRAM.indexOf('format panels'))}
${SORTED_TILES}
kernel k(m: size, k: size, n: size) {
  axis i = dense_fixed(m)
  axis p = sparse_variable(i, k)
  axis pd = dense_fixed(k)
  axis f = dense_fixed(n)
  buffer A: i32[i, p] in
  buffer X: i32[i, f] in
  buffer C: i32[i, f] out
  iterate sum [i, p, f] as SRS { C[i, f] += A[i, p] * X[i, f] }
}
schedule k.s(g, s, fs, stages) {
  A as sorted(g)
  require n % (2 * fs) == 0
  split f by 2 * fs -> (fo, fi)
  reorder (io, fo, ii, fi, ko)
  bind io to block.x, fo to block.y, ii to thread.x
  cache_read X at fo in shared padded 0 -> Xs
  split Xs.fi by 2 -> (fv, fl)
  tensorize fl with pair
}`

const cases = fc.record({
  sorted: fc.boolean(),
  m: fc.integer({ min: 1, max: 7 }),
  k: fc.integer({ min: 1, max: 5 }),
  blocks: fc.integer({ min: 1, max: 2 }),
  g: fc.constantFrom(2, 4),
  s: fc.constantFrom(1, 2, 3),
  fs: fc.constantFrom(1, 2),
  stages: fc.constantFrom(1, 2, 3),
  stored: fc.array(fc.tuple(fc.nat(6), fc.nat(4)), { maxLength: 12 }),
})
type Drawn = typeof cases extends fc.Arbitrary<infer T> ? T : never

function made({ sorted, m, k, blocks, g, s, fs, stages, stored }: Drawn) {
  const c = parseProgram(
    sorted ? SORTED : stages > 1 ? PROGRAM : PROGRAM.replace('pipeline go by stages', ''),
  )
    .kernel()
    .schedule('s', g, s, fs, stages).compilation
  const at = [...new Map(stored.filter(([i, j]) => i < m && j < k).map((x) => [`${x}`, x])).values()]
  const n = blocks * 2 * fs
  const rows = sorted ? m : k
  const bound = bindInputs(c.kernel, {
    tensors: {
      A: coords(
        [m, k],
        [at.map((x) => x[0]), at.map((x) => x[1])],
        Int32Array.from(at, (_, e) => e - 5),
      ),
      X: dense(
        [rows, n],
        Int32Array.from({ length: rows * n }, (_, e) => (e % 7) - 3),
      ),
    },
    params: { m, k, n },
  })
  return { c, bound, expected: reference(c.source, referenceInputs(c.source, bound)).buffers }
}

test('agree on the loops and on the cpu', async () => {
  const seen = { filled: 0 }
  await fc.assert(
    fc.asyncProperty(cases, async (drawn) => {
      const { c, bound, expected } = made(drawn)
      const loops = runLoops(c.loops, bound, 'forward')
      expect(Array.from(loops.get('C')!, (x) => Number(x) + 0)).toEqual([...expected.C!.values])
      if (text(c).includes('outside')) seen.filled++
      await agreeOnDevice(createCpuDevice(), c, bound, expected)
    }),
    { numRuns: costly(30) },
  )
  expect(seen.filled).toBeGreaterThan(0)
})

const text = (c: Compilation): string =>
  c
    .texts('js')
    .map((x) => x.text)
    .join('\n')

test('on webgpu', async () => {
  const device = await createNodeWebGpu()
  await fc.assert(
    fc.asyncProperty(cases, async (drawn) => {
      const { c, bound, expected } = made(drawn)
      await agreeOnDevice(device, c, bound, expected)
    }),
    { numRuns: costly(3) },
  )
  await device.dispose()
})

test('a copy with partially present elements is rejected', () => {
  const some = PROGRAM.replace('require n % (2 * fs) == 0\n', '')
  const said = refusal(() => parseProgram(some).kernel().schedule('s', 2, 2, 1, 1).compilation.loops)
  expect(said.code).toBe('schedule/guarded')
  expect(said.message).toContain('decides which of the elements that are copied together are there')
})

/** Copies of `w` elements together, of columns that tiles cut off, where sizes are multiples of `by`, if that is asked. */
const cut = (w: number, by: number | null): string => {
  const texts = (there: string) =>
    `$[for k from 0 to ${w - 1}: if ($there == 1) { $D[$D.index(k)] = $S[$S.index(k)]; } else { $D[$D.index(k)] = 0; }]${there}`
  return `instr run(D: i32[${w}] in shared, S: i32[${w}] in global) {
  iterate copy [k] as S { D[k] = S[k] }
  js \`$[for k from 0 to ${w - 1}: $D[$D.index(k)] = $S[$S.index(k)];]\`
  wgsl \`$[for k from 0 to ${w - 1}: $D[$D.index(k)] = $S[$S.index(k)];]\`
  filled js \`${texts(' /* asked */')}\`
  filled wgsl \`${texts('')}\`
}
${PANELS}
schedule k.s(g, s, cols, stages) {
  A as panels(g, s)
  ${by === null ? '' : `require n % ${by} == 0`}
  split f by cols -> (fo, fi)
  reorder (io, fo, go, ii, fi, ko)
  bind io to block.x, fo to block.y, ii to thread.x
  cache_read X at go in shared padded 0 -> Xs
  split Xs.fi by ${w} -> (fv, fl)
  tensorize fl with run
  pipeline go by stages
}`
}

const cuts = fc.record({
  w: fc.constantFrom(2, 4, 8),
  tiles: fc.constantFrom(1, 2, 3),
  runs: fc.nat(7),
  m: fc.integer({ min: 1, max: 5 }),
  k: fc.integer({ min: 1, max: 5 }),
  g: fc.constantFrom(2, 4),
  s: fc.constantFrom(1, 2, 3),
  stages: fc.constantFrom(2, 3),
  stored: fc.array(fc.tuple(fc.nat(4), fc.nat(4)), { maxLength: 12 }),
})
type Cut = typeof cuts extends fc.Arbitrary<infer T> ? T : never

async function cutAgrees(device: Device, { w, tiles, runs: count, m, k, g, s, stages, stored }: Cut) {
  const c = parseProgram(cut(w, w))
    .kernel()
    .schedule('s', g, s, tiles * w, stages).compilation
  // Nothing divides tiles: only runs are whole.
  const n = count * w
  const at = [...new Map(stored.filter(([i, j]) => i < m && j < k).map((x) => [`${x}`, x])).values()]
  const bound = bindInputs(c.kernel, {
    tensors: {
      A: coords(
        [m, k],
        [at.map((x) => x[0]), at.map((x) => x[1])],
        Int32Array.from(at, (_, e) => e - 5),
      ),
      X: dense(
        [k, n],
        Int32Array.from({ length: k * n }, (_, e) => (e % 7) - 3),
      ),
    },
    params: { m, k, n },
  })
  await agreeOnDevice(device, c, bound, reference(c.source, referenceInputs(c.source, bound)).buffers)
  return c
}

test('aligned runs at the edge are tested once each, on the cpu', async () => {
  await fc.assert(
    fc.asyncProperty(cuts, async (drawn) => {
      const c = await cutAgrees(createCpuDevice(), drawn)
      // No element of a run is asked for by itself.
      const conditions = [...text(c).matchAll(/if \(([^;{]*) == 1\)/g)].map((x) => x[1]!)
      expect(conditions.length).toBeGreaterThan(0)
      expect(conditions.length % drawn.w).toBe(0)
      for (let k = 0; k < conditions.length; k += drawn.w)
        expect(new Set(conditions.slice(k, k + drawn.w)).size).toBe(1)
    }),
    { numRuns: costly(30) },
  )
})

test('the same on webgpu', async () => {
  const device = await createNodeWebGpu()
  await fc.assert(
    fc.asyncProperty(cuts, async (drawn) => void (await cutAgrees(device, drawn))),
    { numRuns: costly(4) },
  )
  await device.dispose()
})

test.each([2, 4, 8])('partial runs of %i are rejected', (w) => {
  const loops = (by: number | null) => () =>
    void parseProgram(cut(w, by))
      .kernel()
      .schedule('s', 2, 2, 2 * w, 2).compilation.loops
  expect(loops(w)).not.toThrow()
  expect(loops(2 * w)).not.toThrow()
  expect(refusal(loops(null)).code).toBe('schedule/guarded')
  expect(refusal(loops(w / 2)).code).toBe('schedule/guarded')
  expect(refusal(loops(w + 1)).code).toBe('schedule/guarded')
})

test.each([
  [
    'a sum',
    'D[k] += S[k]',
    '',
    'js `x();` filled js `y($there);`',
    'is not a copy from global to shared memory',
  ],
  [
    'a copy between shared buffers',
    'D[k] = S[k]',
    'shared',
    'js `x();` filled js `y($there);`',
    'is not a copy from global to shared memory',
  ],
  [
    'a copy into registers',
    'D[k] = S[k]',
    '',
    'js `x();` filled js `y($there);`',
    'is not a copy from global',
    'register',
  ],
  ['another target', 'D[k] = S[k]', '', 'js `x();` filled wgsl `y($there);`', 'filled texts for wgsl'],
  ['a word of filled texts alone', 'D[k] = S[k]', '', 'js `x($there);`', 'there'],
])('%s is not a zero-filling copy', (_, body, place, texts, message, to = 'shared') => {
  const said = refusal(() =>
    parseProgram(`instr it(D: i32[2] in ${to}, S: i32[2] in ${place || 'global'}) {
  iterate it [k] as S { ${body} }
  ${texts.replace(' filled', '\n  filled')}
}`),
  )
  expect(said.code).toMatch(/^check\/instr-/)
  expect(said.message).toContain(message)
})
