/** Pipelines that go on into the next tiles: nothing changes, whatever tiles there are and however many rounds each has. */

import fc from 'fast-check'
import { expect, test } from 'vitest'
import { flatInputs } from '../../src/api/inputs/flat-inputs.ts'
import { coords, dense } from '../../src/api/inputs/tensors.ts'
import { parseProgram } from '../../src/api/programs/program.ts'
import { devices } from '../../src/node.ts'
import { reference } from '../../src/reference/index.ts'
import { bindInputs, type Inputs } from '../../src/run/bind/index.ts'
import { referenceInputs } from '../../src/run/bind/results/reference-inputs.ts'
import { createCpuDevice } from '../../src/runtime/cpu/device.ts'
import type { Tensor } from '../../src/storage/tensor.ts'
import { agreeOnAll, agreeOnDevice } from '../properties/agree.ts'
import { runs, sample } from '../support/cases.ts'
import { refusal } from '../support/refusal.ts'
import { gatherBy } from './tma-gathers.ts'
import type { Continued } from './tma-products.ts'
import { continuedSteps, copiesOf, inputsOf, LAYER, scheduledBy, stepsOf } from './tma-products.ts'

const TEXT = `
${LAYER}
schedule layer.tiles(rows, cols) {
  split sum.i by 2 * rows -> (io, ii)
  split ii by 2 -> (it, ir)
  split sum.j by 2 * cols -> (jo, ji)
  split ji by 2 -> (jt, jr)
}
// Blocks take tiles one after the other; the last may be cut off, and so may the last round.
schedule layer.blocks(rows, cols, depth, stages, grid) {
  use tiles(rows, cols)
  split p by depth -> (po, pi)
  reorder (io, jo, it, jt, po, pi, ir, jr)
  compute_at after at jt
  cache_write T at jt in register
  fuse (io, jo) -> tile
  split tile by grid -> (round, block)
  reorder (block, round)
  bind block to block.x, it to thread.y, jt to thread.x
  cache_read A at po in shared padded 0 -> As
  cache_read B at po in shared padded 0 -> Bs
  pipeline po by stages over round
}
// Results leave through shared memory. One block has all tiles, in two loops.
schedule layer.through(rows, cols, depth, stages, grid) {
  use tiles(rows, cols)
  split p by depth -> (po, pi)
  reorder (io, jo, it, jt, po, pi, ir, jr)
  compute_at after at jt
  cache_write T at jt in register
  fuse (io, jo) -> tile
  split tile by grid -> (again, round)
  bind it to thread.y, jt to thread.x
  cache_write C at round in shared -> Cs
  cache_read A at po in shared -> As
  cache_read B at po in shared padded 0 -> Bs
  pipeline po by stages over round
}
// One thread; one of two operands is copied.
schedule layer.alone(rows, cols, depth, stages, grid) {
  use tiles(rows, cols)
  split p by depth -> (po, pi)
  reorder (io, jo, po, it, jt, pi, ir, jr)
  compute_at after at jo
  cache_write T at jo in register
  cache_read B at po in shared -> Bs
  pipeline po by stages over jo
}

kernel gather(m: size, n: size, d: size) {
  axis i  = dense_fixed(m)
  axis j  = sparse_variable(i, n)
  axis jd = dense_fixed(n)
  axis f  = dense_fixed(d)
  buffer A: f32[i, j] in
  buffer B: f32[jd, f] in
  buffer C: f32[i, f] out
  iterate sum [i, j, f] as SRS { C[i, f] += A[i, j] * B[j, f] }
}
// Rows with any number of rounds, or none.
schedule gather.rows(rows, cols, depth, stages, grid) {
  split j by depth -> (jo, ji)
  split f by 2 * cols -> (fo, fi)
  reorder (i, fo, fi, jo, ji)
  fuse (i, fo) -> tile
  split tile by grid -> (round, block)
  reorder (block, round)
  bind block to block.x, fi to thread.x
  cache_write C at fi in register
  cache_read A at jo in shared padded 0 -> As
  cache_read B at jo in shared padded 0 -> Bs
  pipeline jo by stages over round
}
// Threads may have nothing to compute, and copy nevertheless.
schedule gather.runs(rows, cols, depth, stages, grid) {
  split i by grid -> (io, ii)
  split f by 1 + cols -> (fo, fi)
  split j by depth -> (jo, ji)
  reorder (io, fo, fi, ii, jo, ji)
  bind io to block.x, fo to block.y, fi to thread.x
  cache_write C at ii in register
  cache_read A at jo in shared padded 0 -> As
  cache_read B at jo in shared padded 0 -> Bs
  pipeline jo by stages over ii
}
// The one thread there is may have nothing to compute.
schedule gather.one(rows, cols, depth, stages, grid) {
  split f by 1 + cols -> (fo, ft)
  split ft by 1 + cols -> (fa, fb)
  reorder (fo, i, fb, fa, j)
  fuse (i, fb) -> tile
  bind fo to block.x, fa to thread.x
  cache_write C at fa in register
  cache_read A at j in shared -> As
  pipeline j by stages over tile
}
// Copies that run ahead read a tile of an outer pipeline.
schedule gather.nested(rows, cols, depth, stages, grid) {
  split j by depth -> (jo, ji)
  split f by 2 * cols -> (fo, ft)
  split ft by 2 -> (fa, fb)
  reorder (fo, i, jo, ji, fa, fb)
  bind fo to block.x, fb to thread.x
  cache_read A at fa in shared -> Ai
  pipeline fa by stages over ji
  cache_read A at jo in shared -> Ao
  pipeline jo by stages
}
`
const program = parseProgram(TEXT)

const whole = (rows: number, cols: number, seed: number): Tensor =>
  dense(
    [rows, cols],
    Float32Array.from({ length: rows * cols }, (_, e) => ((e * 31 + seed) % 9) - 4),
  )

/** Of rows and columns some are empty, at the ends too. */
function inputsFor(kernel: string, m: number, n: number, k: number, seed: number): Inputs {
  if (kernel === 'layer')
    return {
      tensors: {
        A: whole(m, k, seed),
        B: whole(k, n, seed + 3),
        bias: dense([n], whole(1, n, seed).values!),
      },
      params: { m, n, k },
    }
  const cells = Array.from({ length: m * n }, (_, e) => e).filter(
    (e) => (e * 7919 + seed) % 5 < 3 && (Math.floor(e / n) * 5 + seed) % 4 !== 0,
  )
  const A = coords(
    [m, n],
    [cells.map((e) => Math.floor(e / n)), cells.map((e) => e % n)],
    cells.map((e) => (e % 7) - 3),
  )
  return { tensors: { A, B: whole(n, k, seed) }, params: { m, n, d: k } }
}

const CASES = [
  ['layer', 'blocks'],
  ['layer', 'through'],
  ['layer', 'alone'],
  ['gather', 'rows'],
  ['gather', 'runs'],
  ['gather', 'one'],
  ['gather', 'nested'],
] as const

test('copies for the next tiles do not change results, and cause no races', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom(...CASES),
      fc.record({
        rows: fc.integer({ min: 1, max: 2 }),
        cols: fc.integer({ min: 1, max: 3 }),
        depth: fc.integer({ min: 1, max: 3 }),
        stages: fc.integer({ min: 2, max: 5 }),
        grid: fc.integer({ min: 1, max: 4 }),
      }),
      fc.record({ m: fc.nat(9), n: fc.integer({ min: 1, max: 9 }), k: fc.nat(9), seed: fc.nat(100) }),
      async ([kernel, name], { rows, cols, depth, stages, grid }, { m, n, k, seed }) => {
        const { compilation: c } = program.kernel(kernel).schedule(name, rows, cols, depth, stages, grid)
        await agreeOnAll(c, inputsFor(kernel, m, n, k, seed))
      },
    ),
    { numRuns: runs(7) },
  )
})

test('idle threads copy for the others', async () => {
  const device = createCpuDevice()
  await fc.assert(
    fc.asyncProperty(fc.integer({ min: 2, max: 4 }), fc.nat(100), async (stages, seed) => {
      // Three threads, of which one has a column; all have an element of A.
      const { compilation: c } = program.kernel('gather').schedule('runs', 1, 2, 3, stages, 3)
      const bound = bindInputs(c.kernel, inputsFor('gather', 8, 9, 1, seed))
      const expected = reference(c.source, referenceInputs(c.source, bound)).buffers
      await agreeOnDevice(device, c, bound, expected)
    }),
    { numRuns: runs(3) },
  )
})

test('copies for the next tiles on WebGPU', async () => {
  const device = await devices.webgpu()
  for (const [kernel, name] of sample(CASES, 2)) {
    const compiled = await program.kernel(kernel).schedule(name, 2, 2, 2, 3, 2).build(device)
    for (const [m, n, k] of [
      [9, 8, 7],
      [5, 3, 0],
    ] as const) {
      const prepared = await compiled.bind(...flatInputs(inputsFor(kernel, m, n, k, 3)))
      expect((await prepared.verify()).problems, `${kernel}.${name} ${m} ${n} ${k}`).toEqual([])
      prepared.free()
    }
  }
  await device.dispose()
})

const continued = fc.record<Continued>({
  kernel: fc.constantFrom('product', 'blocks'),
  a: fc.constantFrom('bulk', 'later', 'plain'),
  b: fc.constantFrom('bulk', 'later', 'plain'),
  ordered: fc.boolean(),
  stages: fc.constantFrom(2, 3, 4, 5),
  grid: fc.integer({ min: 1, max: 7 }),
  again: fc.boolean(),
  through: fc.boolean(),
  boxes: fc.boolean(),
})

test('delayed copies arrive before their use, in any tile', () => {
  fc.assert(
    fc.property(
      continued,
      fc.integer({ min: 1, max: 5 }),
      fc.integer({ min: 1, max: 3 }),
      fc.nat(5),
      fc.nat(1000),
      (made, rows, columns, rounds, seed) => {
        const { inputs, C } = inputsOf(made.kernel, rows, rounds, seed, 8 * columns)
        const copies = copiesOf(scheduledBy(made.kernel, continuedSteps(made)), inputs, C, seed)
        const alone = copiesOf(scheduledBy(made.kernel, continuedSteps(made, false)), inputs, C, seed)
        expect(copies).toBe(alone)
      },
    ),
    { numRuns: runs(5) },
  )
})

test('an iteration begins after all threads have finished the previous one', () => {
  const turns = fc.record({ rows: fc.integer({ min: 3, max: 5 }), stages: fc.integer({ min: 2, max: 4 }) })
  fc.assert(
    fc.property(turns, fc.integer({ min: 1, max: 4 }), fc.nat(1000), ({ rows, stages }, rounds, seed) => {
      const { inputs, C } = inputsOf('product', rows, rounds, seed, 8)
      const boxes = { kernel: 'product', a: 'bulk', b: 'bulk', ordered: true } as const
      const steps = continuedSteps({ ...boxes, stages, grid: 1, again: true, through: false, boxes: false })
      expect(copiesOf(scheduledBy('product', steps), inputs, C, seed)).toBe(rows * rounds * 6)
    }),
    { numRuns: runs(2) },
  )
})

test('copies for the next tile are in flight during the store of results', () => {
  const steps = { kernel: 'blocks', a: 'bulk', b: 'later', ordered: true, stages: 4, grid: 2 } as const
  const text = scheduledBy(
    'blocks',
    continuedSteps({ ...steps, again: false, through: true, boxes: false }),
  ).emit('cuda')[0]!.text
  const events =
    /expect\(|bulk\(|later\(|copied|[^_]wait\(\d\)|arrived\(\(|multiply\(|started|done\(\d\)|for \(int \w+|C\[/g
  const all = [...text.matchAll(events)].map((m) => m[0].trim())
  const start = ['expect(', 'bulk(', 'later(', 'copied']
  const product = ['arrived((', 'multiply(', 'multiply(', 'started', 'done(1)']
  expect(all).toEqual([
    ...['for (int round_5', ...start, 'wait(2)'],
    ...['for (int round', 'for (int j', ...product, ...start, 'wait(2)'],
    ...['done(0)', 'for (int round_4', 'C['],
  ])
})

test.each(sample([1, 2, 3, 4, 5] as const, 2))(
  'results are stored asynchronously, over %d iterations of blocks',
  (rounds) => {
    fc.assert(
      fc.property(
        fc.record({
          kernel: fc.constantFrom('product', 'blocks'),
          a: fc.constantFrom('bulk', 'later', 'plain'),
          stages: fc.constantFrom(2, 3),
          grid: fc.integer({ min: 1, max: 3 }),
          again: fc.boolean(),
        }),
        fc.boolean(),
        fc.integer({ min: 2, max: 5 }),
        fc.nat(1000),
        (made, continued, rows, seed) => {
          const all: Continued = { ...made, b: 'bulk', ordered: true, through: true, boxes: true }
          const { inputs, C } = inputsOf(made.kernel, rows, rounds, seed, 16)
          copiesOf(scheduledBy(made.kernel, continuedSteps(all, continued)), inputs, C, seed)
        },
      ),
      { numRuns: runs(2) },
    )
  },
)

test('the next tile is computed during the asynchronous store, which is awaited before reuse', () => {
  const steps = { kernel: 'product', a: 'bulk', b: 'bulk', ordered: true, stages: 3, grid: 2 } as const
  const text = scheduledBy(
    'product',
    continuedSteps({ ...steps, again: false, through: true, boxes: true }),
  ).emit('cuda')[0]!.text
  const events =
    /multiply\(|leave\(|left|stored\(\d\)|taken\(\d\)|__syncthreads|for \(int round\b|Cs\[[^\n]* = /g
  const all = [...text.slice(text.indexOf('for (int round =')).matchAll(events)].map((m) =>
    m[0].slice(0, 8).trim(),
  )
  const multiply = all.lastIndexOf('multiply')
  expect(all.slice(multiply + 2)).toEqual([
    ...[
      'taken(0)',
      '__syncth',
      ...Array<string>(all.filter((x) => x.startsWith('Cs[')).length).fill(
        all.find((x) => x.startsWith('Cs['))!,
      ),
    ],
    ...['__syncth', 'leave(', 'left', '__syncth', 'taken(0)'],
  ])
})

test('values common to all copies of a tile are computed once', () => {
  const steps = { kernel: 'blocks', a: 'bulk', b: 'bulk', ordered: true, stages: 3, grid: 2 } as const
  const text = scheduledBy(
    'blocks',
    continuedSteps({ ...steps, again: false, through: true, boxes: false }),
  ).emit('cuda')[0]!.text
  const copies = text.split('\n').filter((l) => l.includes('bulk('))
  expect(copies).toHaveLength(4)
  for (const l of copies) expect(l).not.toMatch(/j_indptr\[|part/)
})

const refused = (f: () => unknown, message: string): void => {
  const d = refusal(f)
  expect([d.code, d.message]).toEqual(['schedule/not-one-sequence', expect.stringContaining(message)])
  expect(d.span).toBeDefined()
  expect(d.expected).toBeDefined()
}

test.each([
  [
    'reorder (io, jo, it, jt, po, pi, ir, jr)\nbind io to block.x, jo to block.y, it to thread.y, jt to thread.x',
    'jo',
    'no serial loop is around po',
  ],
  [
    'reorder (io, jo, it, jt, po, pi, ir, jr)\nbind io to block.x, jt to thread.x',
    'jo',
    'it is the innermost serial loop around po, not jo',
  ],
  [
    'reorder (it, io, jo, jt, po, pi, ir, jr)\nbind it to thread.y, jt to thread.x',
    'io',
    'jo is the innermost serial loop around po, not io',
  ],
])('an outer loop that pipelines do not cross: %#', (order, over, message) => {
  const text = `schedule layer.tested {
    use tiles(2, 2)
    split p by 2 -> (po, pi)
    ${order}
    cache_read B at po in shared padded 0 -> Bs
    pipeline po by 2 over ${over}
  }`
  const kernel = parseProgram(`${TEXT}\n${text}`).kernel('layer')
  refused(() => kernel.schedule('tested'), message)
})

test('divergent iteration counts', () => {
  const text = `schedule gather.tested {
    split i by 2 -> (round, row)
    reorder (row, round, j, f)
    bind row to thread.y
    cache_read A at j in shared -> As
    pipeline j by 2 over round
  }`
  const kernel = parseProgram(`${TEXT}\n${text}`).kernel('gather')
  refused(() => kernel.schedule('tested'), 'threads may disagree on ')
})

test('copies of data that the outer loop writes', () => {
  const text = `
    kernel twice(m: size, k: size) {
      axis i = dense_fixed(m)
      axis p = dense_fixed(k)
      axis q = dense_fixed(k)
      buffer A: f32[i, p] in
      buffer B: f32[p, q] in
      buffer P: f32[i, p] local
      buffer C: f32[i, q] out
      iterate double [i, p] as SS { P[i, p] = 2 * A[i, p] }
      iterate sum [i, q, p] as SSR { C[i, q] += P[i, p] * B[p, q] }
    }
    schedule twice.tested {
      compute_at double at sum.i
      split sum.p by 2 -> (po, pi)
      reorder (po, sum.q, pi)
      cache_read P at po in shared padded 0 -> Ps
      pipeline po by 2 over i
    }`
  refused(
    () => parseProgram(text).kernel('twice').schedule('tested'),
    'the copies of po read P, which i writes',
  )
})

test('copies by one row of threads', () => {
  const by = (over: string) => (): unknown =>
    gatherBy(`
    require m % 4 == 0
    require d % 4 == 0
    split i by 2 -> (io, ii)
    split f by 4 -> (fo, fi)
    reorder (io, fo, ii, j, bi, k, fi)
    bind ii to thread.y
    cache_write C at ii in register
    cache_read B at j in tile -> Bs
    tensorize Bs.k with bulk
    pipeline j by 2 ${over}`)
  expect(by('')).not.toThrow()
  refused(by('over fo'), 'the copies of j depend on loops between j and fo')
})

test.each([
  ['unroll round', 'round, the loop around po, is not serial'],
  ['bind round to block.y', 'no serial loop is around po'],
])('later steps that break the sequence: %s', (step, message) => {
  const text = `schedule layer.tested {
    use blocks(2, 2, 2, 2, 2)
    require m == 8
    require n == 8
    ${step}
  }`
  const kernel = parseProgram(`${TEXT}\n${text}`).kernel('layer')
  refused(() => kernel.schedule('tested'), message)
})

test.each([
  ['one thread', '', 'q'],
  ['threads that meet within a round', 'bind q to thread.x', 'i'],
  ['threads that meet after all', 'reorder (q, i, fo, fi)  bind q to thread.x', 'i'],
])('loops that initialise or complete elements do not copy: %s', async (_, steps, over) => {
  const text = `
    kernel sums(m: size) {
      axis i = dense_fixed(m)
      axis q = dense_fixed(4)
      axis f = dense_fixed(6)
      buffer Y: i32[i, f] in
      buffer Z: i32[f] out
      iterate sum [i, q, f] as RRS { Z[f] += Y[i, f] * (q + 1) }
    }
    schedule sums.tested {
      split f by 2 -> (fo, fi)
      ${steps}
      cache_read Y at fo in shared
      pipeline fo by 2 over ${over}
    }`
  const { compilation } = parseProgram(text).kernel('sums').schedule('tested')
  for (const m of [0, 1, 5])
    await agreeOnAll(compilation, {
      tensors: {
        Y: dense(
          [m, 6],
          Int32Array.from({ length: m * 6 }, (_, e) => ((e * 7) % 9) - 3),
        ),
      },
      params: { m },
    })
})

test('multicast copies in a cluster', () => {
  const steps = stepsOf({
    kernel: 'product',
    a: 'bulk',
    b: 'bulk',
    ordered: true,
    again: true,
    stages: 0,
    cluster: 2,
  })
  const kernel = scheduledBy('product', `${steps}\npipeline po by 3 over ios`)
  refused(() => kernel.emit('cuda'), 'blocks of a cluster copy for each other in po')
})
