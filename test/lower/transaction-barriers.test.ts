/**
 * Pipelines whose copies count their bytes on barriers: whenever copies and computing end, and in whatever order threads
 * come to them, nobody waits for ever, and nothing is read before it is there or filled again while it is used.
 */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { Kernel2, Stmt } from '../../src/ir/statements/loops.ts'
import { rewriteStmts, stmt, walkStmts } from '../../src/ir/statements/tree.ts'
import { asynchronousInstrs, insertAsyncWaits } from '../../src/lower/pipelining/async-wait-insertion.ts'
import { runs } from '../support/cases.ts'
import {
  COPIES,
  copiesOf,
  counts,
  type Dealt,
  dealtSteps,
  inputsOf,
  KINDS,
  type Nested,
  nestedSteps,
  type Steps,
  scheduled,
  scheduledBy,
  stepsOf,
} from './tma-products.ts'

const nested = fc.record<Nested>({
  a: fc.constantFrom(...COPIES),
  b: fc.constantFrom(...COPIES),
  ordered: fc.boolean(),
  again: fc.boolean(),
  stages: fc.constantFrom(0, 2, 3, 4, 5),
})
const steps = fc
  .tuple(nested, fc.constantFrom('product', 'blocks'))
  .map(([s, kernel]): Steps => ({ ...s, kernel }))

test('byte-counted copies arrive before use, and after the overwritten data were read', () => {
  fc.assert(
    fc.property(
      steps,
      fc.integer({ min: 1, max: 5 }),
      fc.nat(9),
      fc.nat(1000),
      (made, rows, rounds, seed) => {
        const { inputs, C, some } = inputsOf(made.kernel, rows, rounds, seed)
        const copies = copiesOf(scheduled(made), inputs, C, seed)
        expect(copies > 0).toBe(some && counts(made))
      },
    ),
    { numRuns: runs(5) },
  )
})

const clustered = fc
  .tuple(steps, fc.constantFrom(2, 4), fc.integer({ min: 2, max: 5 }))
  .map(([s, cluster, stages]): Steps => ({ ...s, a: 'bulk', cluster, stages }))

test('common copies of a cluster are multicast, if no block needs the old data', () => {
  fc.assert(
    fc.property(
      clustered,
      fc.integer({ min: 1, max: 4 }),
      fc.nat(9),
      fc.nat(1000),
      (made, rows, rounds, seed) => {
        const { inputs, C } = inputsOf(made.kernel, rows, rounds, seed, 32)
        const copies = copiesOf(scheduled(made), inputs, C, seed)
        const alone = copiesOf(scheduled({ ...made, cluster: 1 }), inputs, C, seed)
        // Of six boxes that a block needs in a round, two are of A; where B comes otherwise, all are.
        const ofA = alone / (['bulk', 'single'].includes(made.b) ? 3 : 1)
        expect(copies).toBe(ofA / made.cluster! + (alone - ofA))
      },
    ),
    { numRuns: runs(3) },
  )
})

test('so do those of nested pipelines', () => {
  fc.assert(
    fc.property(
      nested,
      fc.integer({ min: 1, max: 4 }),
      fc.nat(4),
      fc.nat(1000),
      (made, rows, rounds, seed) => {
        const { inputs, C, some } = inputsOf('product', rows, 2 * rounds, seed)
        const copies = copiesOf(scheduledBy('product', nestedSteps(made)), inputs, C, seed)
        expect(copies > 0).toBe(some && counts(made))
      },
    ),
    { numRuns: runs(3) },
  )
})

const dealt = fc.record<Dealt>({
  a: fc.constantFrom('bulk', 'plain'),
  b: fc.constantFrom('bulk', 'plain'),
  ordered: fc.boolean(),
  stages: fc.constantFrom(0, 2, 3, 4, 5),
  grid: fc.integer({ min: 1, max: 7 }),
})

test('so do those of persistent blocks', () => {
  fc.assert(
    fc.property(
      dealt,
      fc.integer({ min: 1, max: 4 }),
      fc.integer({ min: 1, max: 3 }),
      fc.nat(5),
      fc.nat(1000),
      (made, rows, columns, rounds, seed) => {
        const { inputs, C, some } = inputsOf('product', rows, rounds, seed, 8 * columns)
        const copies = copiesOf(scheduledBy('product', dealtSteps(made)), inputs, C, seed)
        const boxes = (made.a === 'bulk' ? 2 : 0) + (made.b === 'bulk' ? 4 : 0)
        expect(copies).toBe(some ? rows * columns * rounds * boxes : 0)
      },
    ),
    { numRuns: runs(3) },
  )
})

const EVENTS = /expect\(|bulk\(|later\(|copied|wait\(\d\)|arrived\(|multiply|started|done\(\d\)|__sync\w+/g
const eventsOf = (text: string): string[] =>
  [...text.slice(text.indexOf('for (int po')).matchAll(EVENTS)].map((m) => m[0])

test('copies of both kinds are in flight during an iteration', () => {
  const steps = { kernel: 'product', a: 'bulk', b: 'later', ordered: true, again: false, stages: 4 } as const
  expect(eventsOf(scheduled(steps).emit('cuda')[0]!.text)).toEqual([
    ...['arrived(', 'multiply', 'multiply', 'started', 'done(1)', '__syncthreads'],
    ...['expect(', 'bulk(', 'later(', 'copied', 'wait(2)', '__syncthreads', 'done(0)'],
  ])
})

test('unordered instructions are awaited in their iteration', () => {
  const steps = { kernel: 'product', a: 'bulk', b: 'bulk', ordered: true, again: false, stages: 4 } as const
  const declared = KINDS.replace('asynchronous ordered', 'asynchronous')
  const kernel = scheduledBy('product', stepsOf(steps), declared)
  expect(eventsOf(kernel.emit('cuda')[0]!.text)).toEqual([
    ...['arrived(', 'multiply', 'multiply', 'started', 'done(0)'],
    ...['expect(', 'bulk(', 'bulk(', '__syncthreads'],
  ])
})

test('group-committed copies arrive before threads compute with them', () => {
  const { inputs, C } = inputsOf('product', 2, 3, 1)
  for (const [a, b] of [
    ['later', 'plain'],
    ['plain', 'later'],
  ] as const) {
    const made = scheduled({ kernel: 'product', a, b, ordered: false, again: false, stages: 0 })
    expect(copiesOf(made, inputs, C, 1)).toBe(0)
  }
})

test('byte-counted copies begin after pending ones were awaited', () => {
  let loops: Kernel2 | undefined
  scheduled({
    kernel: 'product',
    a: 'bulk',
    b: 'bulk',
    ordered: true,
    again: false,
    stages: 0,
  }).compilation.observe((pass, made) => {
    if (pass === 'software-pipelining' && made.stage === 2) loops = made
  })
  const isCopy = (s: Stmt): boolean => asynchronousInstrs(s).some((i) => i.asynchronous?.mbarrier)
  // Tiles that are filled again where they were used, as if for another product.
  const body = rewriteStmts(loops!.body, {
    stmt: (s) =>
      s.kind === 'for' && s.body.some(isCopy)
        ? stmt({ ...s, body: [...s.body, ...s.body.filter(isCopy)] })
        : undefined,
  })
  const order: string[] = []
  walkStmts(insertAsyncWaits({ ...loops!, body }).body, (s) => {
    if (s.kind === 'for' && s.mode.kind === 'instr') order.push(s.mode.instr.name)
    if (s.kind === 'instr' && String(s.texts[0]?.pieces[0]).startsWith('done(')) order.push('done')
  })
  const after = order.flatMap((x, k) => (x === 'multiply' ? [order[k + 1]] : []))
  expect(after.length).toBeGreaterThan(0)
  expect(new Set(after)).toEqual(new Set(['done']))
})
