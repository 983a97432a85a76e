/** What the generators of the laws make: from one seed for ever, so that a word that is missing says that they lost it. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { loopsOf } from '../../src/ir/statements/definitions.ts'
import { LOOP_STEPS } from '../../src/schedule/primitives.ts'
import { isTurnOf, LONG } from '../support/cases.ts'
import { unlessSkipped } from '../support/compared.ts'
import { formatCase, poolOf } from './formats.ts'
import { type Case, caseOf, numbers } from './property-cases.ts'

const SEED = 21

/** Steps that need more than the usual number of cases, or a program of their own. */
const RARE = ['accumulate', 'combine', 'compute_inline', 'merge', 'cluster', 'tensorize', 'require']

/** What has to occur in cases that were carried out. */
const COVERED = [
  // axes
  ...[
    'dense_fixed',
    'dense_variable',
    'run',
    'singleton',
    'sparse_fixed',
    'sparse_variable',
    'sparse root',
    'depth 3',
    'dense child',
    'bitmap',
    'pieces',
  ],
  ...['fused', 'attached', 'gathered', 'unordered', 'nonunique', 'packed', 'sparse output', 'join'],
  // types and reducers
  ...['f64', 'f32', 'f16', 'bf16', 'i32', 'u32', 'i8', 'u8', 'bool'],
  ...['+', '*', 'min', 'max', 'and', 'or', 'pair', 'accumulate', 'fill', 'scalar', 'local', 'inout'],
  // statements and expressions
  ...['assign', 'let', 'if', 'else', 'nested', 'map', 'rows', 'select', 'comparison'],
  ...['affine', 'div-mod', 'indirect', 'keyword'],
  // steps
  ...['coords.as', 'coords.reorder', 'coords.fuse', 'coords.attach', 'coords.live', 'coords.drop'],
  ...Object.keys(LOOP_STEPS).filter((word) => !RARE.includes(word)),
]

const drawn = (count: number) => fc.sample(numbers, { seed: SEED, numRuns: count })

const made = <T extends Case>(count: number, of: (choices: readonly number[]) => T): T[] =>
  drawn(count).flatMap((choices) => unlessSkipped(() => of(choices)) ?? [])

const tally = (words: Iterable<string>[]): ReadonlyMap<string, number> => {
  const seen = new Map<string, number>()
  for (const w of words) for (const u of new Set(w)) seen.set(u, (seen.get(u) ?? 0) + 1)
  return seen
}

// The seed never changes: in turn with the formats below.
test.runIf(isTurnOf(0, 2))('programs and steps', () => {
  const missing = new Set(COVERED)
  let tried = 0
  let compared = 0
  // Rare words come once in some 160 cases: any change of the generators moves the case that has them.
  for (const choices of drawn(640)) {
    if (tried++ >= 120 && missing.size === 0) break
    const k = unlessSkipped(() => caseOf(choices, 12))
    if (!k) continue
    compared++
    for (const word of [...k.sample.uses, ...k.scheduled.accepted]) missing.delete(word)
  }
  expect(compared).toBeGreaterThan(0.8 * tried)
  expect([...missing]).toEqual([])
})

test('default schedules', () => {
  // What is found in each run comes with schedules of its own.
  const found = (k: Case): boolean => k.scheduled.accepted.some((word) => word.startsWith('coords.live'))
  const cases = made(40, (choices) => caseOf(choices, 2)).filter((k) => !found(k))
  const defaults = cases.map((k) => [k, k.compilation.parallel()] as const)
  const bound = defaults.filter(([, c]) => loopsOf(c.loops.body).some((l) => l.mode.kind === 'bind'))
  expect(bound.length).toBeGreaterThan(0.7 * cases.length)
  const seen = tally(
    defaults.map(([k, c]) => c.loopSteps.slice(k.compilation.loopSteps.length).map((s) => s.kind)),
  )
  // What a mask keeps may be taken apart first, and repeated coordinates add to elements of several threads.
  const usual = [...seen.keys()].filter((step) => step !== 'fission' && step !== 'atomic').sort()
  expect(usual).toEqual(['bind', 'combine', 'reorder', 'rfactor', 'split'])
})

test.runIf(isTurnOf(1, 2))('formats', async () => {
  const pool = await poolOf(SEED)
  const cases = made(40, (choices) => formatCase(choices, pool, 8))
  expect(cases.length).toBeGreaterThan(0.35 * 40)
})

test.runIf(LONG)('steps of formats of several parts', async () => {
  const pool = await poolOf(SEED)
  const cases = made(100, (choices) => formatCase(choices, pool, 8))
  const seen = tally(cases.map((k) => k.scheduled.accepted))
  expect(['atomic', 'combine', 'each part', 'merge parts'].filter((u) => !seen.has(u))).toEqual([])
})
