/** Equal shares of the positions: segments that lie within one, groups that meet, parts that are carried. */
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { coords, dense } from '../../src/api/inputs/tensors.ts'
import { parseProgram } from '../../src/api/programs/program.ts'
import { print2 } from '../../src/ir/print/print-stage2.ts'
import type { Kernel3, Stmt } from '../../src/ir/statements/loops.ts'
import { walkStmts } from '../../src/ir/statements/tree.ts'
import { type Device, devices, type Kernel, load } from '../../src/node.ts'
import { reference } from '../../src/reference/index.ts'
import { bindInputs, type Inputs } from '../../src/run/bind/index.ts'
import { referenceInputs } from '../../src/run/bind/results/reference-inputs.ts'
import type { Compilation } from '../../src/run/compile/compile.ts'
import { agreeOnDevice, agreeOnStages } from '../properties/agree.ts'
import { runs, sample } from '../support/cases.ts'
import { compileTogether, noNvcc } from '../support/nvcc.ts'

const product = (name: string, type: string, role: string): string => `
kernel ${name}(m: size, n: size, d: size) {
  axis i = dense_fixed(m)
  axis j = sparse_variable(i, n)
  axis jd = dense_fixed(n)
  axis f = dense_fixed(d)
  buffer A: f32[i, j] in
  buffer B: f32[jd, f] in
  buffer C: ${type}[i, f] ${role}
  iterate sum [i, j, f] as SRS { C[i, f] += A[i, j] * B[j, f] }
}
schedule ${name}.split(groups, share, lanes) {
  fuse (i, j) -> ij
  atomic C
  split ij by share -> (o, s)
  split o by groups -> (b, t)
  split f by lanes * 2 -> (fo, fi)
  split fi by 2 -> (fl, fv)
  reorder (b, fo, t, fl, s, fv)
  bind b to block.x, fo to block.y, t to thread.y, fl to thread.x
}
schedule ${name}.alone(groups, share, lanes, by) {
  use split(groups, share, lanes)
  accumulate C over s by by
  unroll fv
}
schedule ${name}.one(groups, share, lanes) {
  use split(groups, share, lanes)
  accumulate C over s
}
schedule ${name}.within(groups, share, lanes, by) {
  use split(groups, share, lanes)
  accumulate C over s by by within t
  unroll fv
}
schedule ${name}.carried(groups, share, lanes, by) {
  use split(groups, share, lanes)
  accumulate C over s by by -> K
  unroll fv
  use second(lanes)
}
schedule ${name}.both(groups, share, lanes, by) {
  use split(groups, share, lanes)
  accumulate C over s by by within t -> K
  unroll fv
  use second(lanes)
}
schedule ${name}.second(lanes) {
  split K.row by 2 -> (ro, ri)
  split K.column by lanes -> (co, ci)
  reorder (ro, co, ri, ci)
  bind ro to block.x, co to block.y, ri to thread.y, ci to thread.x
}
schedule ${name}.serial(share) {
  fuse (i, j) -> ij
  split ij by share -> (o, s)
  reorder (o, f, s)
  accumulate C over s -> K
}`
const TEXT = `${product('product', 'f32', 'out')}
${product('more', 'f32', 'inout')}
${product('half', 'f16', 'out accumulate f32')}
kernel highest(m: size, n: size) {
  axis i = dense_fixed(m)
  axis j = sparse_variable(i, n)
  buffer A: f32[i, j] in
  buffer C: f32[i] out
  iterate most [i, j] as SR { C[i] max= A[i, j] }
}
schedule highest.within(groups, share) {
  fuse (i, j) -> ij
  atomic C
  split ij by share -> (o, s)
  split o by groups -> (b, t)
  bind b to block.x, t to thread.x
  accumulate C over s within t
}
schedule highest.both(groups, share) {
  fuse (i, j) -> ij
  atomic C
  split ij by share -> (o, s)
  split o by groups -> (b, t)
  bind b to block.x, t to thread.x
  accumulate C over s within t -> K
  bind K.row to block.x
}
kernel twice(m: size, n: size, k: size) {
  axis i = dense_fixed(m)
  axis j = sparse_variable(i, n)
  axis h = dense_fixed(k)
  buffer A: f32[i, j] in
  buffer X: f32[h] in
  buffer C: f32[i] out
  iterate sum [i, j, h] as SRR { C[i] += A[i, j] * X[h] }
}
schedule twice.outer(share) {
  fuse (i, j) -> ij
  atomic C
  split ij by share -> (o, s)
  reorder (h, o, s)
  bind h to block.x, o to block.y
  accumulate C over s
}
kernel later(m: size, n: size, d: size) {
  axis i = dense_fixed(m)
  axis j = sparse_variable(i, n)
  axis f = dense_fixed(d)
  buffer A: f32[i, j] in
  buffer X: f32[f] in
  buffer C: f32[i, f] out
  iterate sum [i, j, f] as SRS where (f > 0) { C[i, f] += A[i, j] * X[f] }
}
kernel some(m: size, n: size, d: size) {
  axis i = dense_fixed(m)
  axis j = sparse_variable(i, n)
  axis f = dense_fixed(d)
  buffer A: f32[i, j] in
  buffer X: f32[f] in
  buffer C: f32[i, f] out
  iterate sum [i, j, f] as SRS where (j < 3) { C[i, f] += A[i, j] * X[f] }
}
kernel again(m: size, n: size) {
  axis i = dense_fixed(m)
  axis j = sparse_variable(i, n)
  buffer A: f32[i, j] in
  buffer C: f32[i] out
  iterate first [i, j] as SR { C[i] += A[i, j] }
  iterate then [i, j] as SR { C[i] += A[i, j] * A[i, j] }
}
schedule again.both(share) {
  fuse (first.i, first.j) -> e
  fuse (then.i, then.j) -> g
  atomic C
  split e by share -> (eo, es)
  split g by share -> (go, gs)
  accumulate C over es
  accumulate C over gs
  bind eo to block.x, go to block.x
}
schedule again.merged(share) {
  use both(share)
  merge (first, then)
}`

const program = parseProgram(TEXT)
const scheduled = (kernel: string, schedule: string, ...args: readonly number[]): Kernel =>
  program.kernel(kernel).schedule(schedule, ...args)

const present: Device[] = []
beforeAll(async () => void present.push(await devices.cpu(), await devices.webgpu()))
afterAll(async () => {
  for (const d of present) await d.dispose()
})

/** Lengths of rows: none, one huge one, all of length 1, or anything. */
const lengths: fc.Arbitrary<readonly number[]> = fc.oneof(
  { weight: 4, arbitrary: fc.array(fc.oneof(fc.constant(0), fc.nat(9)), { maxLength: 9 }) },
  fc
    .record({ before: fc.nat(3), huge: fc.integer({ min: 20, max: 50 }), after: fc.nat(3) })
    .map(({ before, huge, after }) => [...Array(before).fill(1), huge, ...Array(after).fill(2)]),
  fc.nat(24).map((m) => Array(m).fill(1)),
  fc.array(fc.constantFrom(4, 8), { maxLength: 8 }),
)
const numbers = (n: number, seed: number): Float32Array =>
  Float32Array.from({ length: n }, (_, k) => ((Math.imul(seed + 1, 2654435761 + 40503 * k) >>> 9) % 7) - 3)

function matrixOf(rows: readonly number[], seed: number) {
  const n = Math.max(1, ...rows)
  const i = rows.flatMap((l, r) => Array(l).fill(r))
  const j = rows.flatMap((l) => Array.from({ length: l }, (_, k) => k))
  return { n, A: coords([rows.length, n], [i, j], numbers(i.length, seed)) }
}

function inputsFor(kernel: string, rows: readonly number[], d: number, seed: number): Inputs {
  const { n, A } = matrixOf(rows, seed)
  if (kernel === 'highest' || kernel === 'again') return { tensors: { A } }
  if (kernel === 'twice') return { tensors: { A, X: dense([d], numbers(d, seed + 1)) } }
  const B = dense([n, d], numbers(n * d, seed + 1))
  const C = dense([rows.length, d], numbers(rows.length * d, seed + 2))
  return { tensors: kernel === 'more' ? { A, B, C } : { A, B } }
}

function onStages(c: Compilation, inputs: Inputs): void {
  const bound = bindInputs(c.kernel, inputs)
  agreeOnStages(c, bound, reference(c.source, referenceInputs(c.source, bound)).buffers)
}

const ways = fc.record({
  schedule: fc.constantFrom('alone', 'one', 'within', 'carried', 'both', 'serial'),
  groups: fc.constantFrom(1, 3, 4),
  share: fc.constantFrom(4, 8),
  lanes: fc.constantFrom(1, 2),
  by: fc.constantFrom(2, 4),
})
const argumentsFor = (w: typeof ways extends fc.Arbitrary<infer W> ? W : never): readonly number[] =>
  w.schedule === 'serial'
    ? [w.share]
    : w.schedule === 'one'
      ? [w.groups, w.share, w.lanes]
      : [w.groups, w.share, w.lanes, w.by]

describe('every stage agrees with the reference', () => {
  test('on products', () => {
    fc.assert(
      fc.property(
        fc.constantFrom('product', 'product', 'more', 'half'),
        ways,
        lengths,
        fc.integer({ min: 1, max: 5 }),
        fc.nat(),
        (kernel, way, rows, d, seed) =>
          onStages(
            scheduled(kernel, way.schedule, ...argumentsFor(way)).compilation,
            inputsFor(kernel, rows, d, seed),
          ),
      ),
      { numRuns: runs(3) },
    )
  })

  test('on maxima, with several groups in a warp', () => {
    fc.assert(
      fc.property(
        fc.constantFrom('within', 'both'),
        fc.constantFrom(1, 2, 4, 5),
        fc.constantFrom(1, 2, 3, 8),
        lengths,
        fc.nat(),
        (schedule, groups, share, rows, seed) =>
          onStages(
            scheduled('highest', schedule, groups, share).compilation,
            inputsFor('highest', rows, 1, seed),
          ),
      ),
      { numRuns: runs(3) },
    )
  })

  test('with other loops or nests that write to a row', () => {
    fc.assert(
      fc.property(
        fc.constantFrom<[string, string]>(['twice', 'outer'], ['again', 'both'], ['again', 'merged']),
        fc.constantFrom(2, 3, 8),
        lengths,
        fc.integer({ min: 1, max: 3 }),
        fc.nat(),
        ([kernel, schedule], share, rows, d, seed) =>
          onStages(scheduled(kernel, schedule, share).compilation, inputsFor(kernel, rows, d, seed)),
      ),
      { numRuns: runs(3) },
    )
  })
})

test.each([0, 1])('devices agree with the reference (%i)', async (device) => {
  const rows = [
    [],
    [0, 0, 0],
    [3, 0, 1, 0, 0, 5, 1, 1, 1, 2, 0],
    [1, 2, 97, 0, 3],
    Array(40).fill(1),
    [8, 8, 4, 12, 4, 4],
    [100],
  ]
  const cases: [string, string, ...number[]][] = [
    ['product', 'alone', 3, 8, 2, 4],
    ['product', 'within', 4, 8, 2, 4],
    ['product', 'carried', 3, 4, 2, 2],
    ['product', 'both', 4, 4, 2, 2],
    ['product', 'both', 32, 4, 2, 2],
    ['more', 'both', 2, 8, 2, 4],
    ['highest', 'within', 8, 4],
    ['highest', 'both', 8, 4],
  ]
  for (const [kernel, schedule, ...args] of sample(cases, 3)) {
    const c = scheduled(kernel, schedule, ...args).compilation
    for (const lengths of rows) {
      const bound = bindInputs(c.kernel, inputsFor(kernel, lengths, 4, lengths.length))
      const expected = reference(c.source, referenceInputs(c.source, bound)).buffers
      await agreeOnDevice(present[device]!, c, bound, expected)
    }
  }
})

describe('the lowered plan', () => {
  const statements = (plan: Kernel3, holds: (s: Stmt) => boolean): number => {
    let n = 0
    for (const step of plan.steps)
      if (step.kind === 'launch') walkStmts(step.body, (s) => void (holds(s) && n++))
    return n
  }
  const isAtomic = (s: Stmt): boolean => s.kind === 'reduce' && s.atomic
  const storesC = (s: Stmt): boolean => s.kind === 'store' && s.buffer === 'C'
  const plan = (...of: Parameters<typeof scheduled>): Kernel3 => scheduled(...of).compilation.plan

  test('segments within a chunk are stored if their elements are unwritten', () => {
    expect(statements(plan('product', 'one', 2, 8, 1), storesC)).toBeGreaterThan(0)
    expect(statements(plan('again', 'merged', 4), storesC)).toBe(0)
    expect(statements(plan('twice', 'outer', 4), storesC)).toBe(0)
  })

  test('carry-outs need no atomics', () => {
    expect(statements(plan('product', 'carried', 2, 8, 1, 2), isAtomic)).toBe(0)
    expect(statements(plan('product', 'both', 2, 8, 1, 2), isAtomic)).toBe(0)
    expect(statements(plan('product', 'within', 2, 8, 1, 2), isAtomic)).toBeGreaterThan(0)
  })

  test.each([
    ['product', 'carried', 0],
    ['product', 'both', 0],
    ['half', 'both', 0],
    // What every share may have.
    ['product', 'within', 1],
  ])('there is no zero-fill if each row is stored: %s.%s', (kernel, schedule, fills) => {
    const { steps } = plan(kernel, schedule, 2, 8, 1, 2)
    expect(steps.filter((s) => s.kind === 'clear')).toHaveLength(fills)
  })

  test.each(['require d % 4 == 0', 'require d == 4', ''])(
    'there is no zero-fill if loops divide the columns: %s',
    (fact) => {
      const text = `${TEXT}
schedule product.divided {
  fuse (i, j) -> ij
  ${fact}
  split ij by 4 -> (o, s)
  split f by 2 -> (fo, fv)
  reorder (o, fo, s, fv)
  accumulate C over s -> K
}`
      const c = parseProgram(text).kernel('product').schedule('divided').compilation
      expect(c.plan.steps.filter((s) => s.kind === 'clear')).toHaveLength(0)
      onStages(c, inputsFor('product', [3, 0, 1, 9, 0, 0, 2], 4, 1))
    },
  )

  test('the printed loop has its mode', () => {
    const text = print2(scheduled('product', 'both', 2, 8, 1, 2).compilation.loops, { bodyOnly: true })
    expect(text).toContain('for s in 0..8  reduce  @accumulate(2, within t, K)')
    expect(text).toContain('for share in 0..max(0, ceildiv(j_indptr[ro * 2 + ri + 1], 16)')
  })
})

describe('is rejected', () => {
  const FUSED = 'fuse (i, j) -> ij; atomic C; split ij by 8 -> (o, s); split o by 4 -> (b, t); '
  const F = 'split f by 2 -> (fo, fv); reorder (fo, b, t, s, fv); '
  test.each([
    ['groups on no threads', `${FUSED}${F}accumulate C over s within t`, 'not bound to threads'],
    [
      'a loop inside of groups on no threads',
      `${FUSED}split f by 2 -> (fo, fv); reorder (b, t, fo, s, fv); bind t to thread.y; accumulate C over s within t`,
      'fo is not bound to threads',
    ],
    [
      'shares apart',
      `fuse (i, j) -> ij; atomic C; split ij by 8 -> (o, s); split f by 2 -> (fo, fv); reorder (fo, o, s, fv)
       split fo by 2 -> (x, y); reorder (o, x, y, s, fv); bind y to thread.y; accumulate C over s within y`,
      'neighbours in y do not have neighbouring shares',
    ],
    [
      'a share that does not begin at its multiple',
      `fuse (i, j) -> ij; atomic C; split ij by 8 -> (s, o); split f by 2 -> (fo, fv); reorder (fo, o, s, fv)
       accumulate C over s -> K`,
      'no',
    ],
    [
      'a column that no share has',
      `fuse (i, j) -> ij; split ij by 8 -> (o, s); reorder (o, f, s); accumulate C over s -> K`,
      'may leave out columns',
      'later',
    ],
    [
      'positions that no share has',
      `${FUSED}${F}accumulate C over s -> K`,
      'may leave out positions',
      'some',
    ],
    [
      'a step after it that puts something beside the shares of a group',
      `use within(4, 8, 2, 2); cache_read A at t in register`,
      'the chunks of s would lose their known common part: t holds more than one loop',
    ],
    ['a name that is taken', `${FUSED}${F}accumulate C over s -> B`, 'B is taken'],
  ])('%s', async (_, steps, message, kernel = 'product') => {
    const text = `${TEXT}\nschedule ${kernel}.wrong { ${steps} }`
    await expect((async () => (await load(text)).kernel(kernel).schedule('wrong'))()).rejects.toThrow(message)
  })
})

test.skipIf(noNvcc)('nvcc compiles it', () => {
  const texts = [
    scheduled('product', 'alone', 4, 32, 8, 4),
    scheduled('product', 'within', 4, 32, 8, 4),
    scheduled('product', 'both', 4, 32, 8, 4),
    scheduled('highest', 'within', 32, 8),
  ].map((k) =>
    k
      .emit('cuda')
      .map((t) => t.text)
      .join('\n'),
  )
  expect(compileTogether(texts)).toBe('')
})
if (noNvcc) console.log(`skipped: compiling CUDA: ${noNvcc}`)
