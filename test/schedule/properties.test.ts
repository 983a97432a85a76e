import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { SptError } from '../../src/ast/diagnostics/diagnostic.ts'
import type { ThreadAxis } from '../../src/ir/expressions/expr.ts'
import { print2 } from '../../src/ir/print/print-stage2.ts'
import type { For } from '../../src/ir/statements/loops.ts'
import { LOOP_STEPS } from '../../src/schedule/primitives.ts'
import type { ScheduleState } from '../../src/schedule/state/state.ts'
import { replay, start, undo } from '../../src/schedule/state/state.ts'
import { type LoopStep, printStep } from '../../src/schedule/steps/step-data.ts'
import { verify2 } from '../../src/verifiers/stage2.ts'
import { LONG, runs } from '../support/cases.ts'
import { run, runPlan, type Sample, samples, withoutFills } from '../support/kernel2.ts'
import { after, choices, stepFor } from '../support/steps.ts'

/** Applies random steps, skipping what is refused; anything but an `SptError` fails the test. */
function schedule(
  { kernel }: Sample,
  numbers: readonly (readonly number[])[],
  each: (state: ScheduleState) => void = () => {},
): ScheduleState {
  let state = start(kernel)
  for (const n of numbers) {
    const next = after(state, stepFor(state, n))
    if (typeof next === 'string') {
      expect(next).toMatch(/^schedule\//)
      continue
    }
    state = next
    each(state)
  }
  return state
}

/** RUNS in the environment asks for a longer search. */
const RUNS = runs(150)

const many = fc.array(choices, { minLength: 4, maxLength: 24 })

describe('legal steps', () => {
  test('never change a result, whatever order bound loops run in', () => {
    const reached = new Map<string, number>()
    fc.assert(
      fc.property(samples, many, (sample, numbers) => {
        verify2(sample.kernel)
        const expected = run(sample.kernel, sample.data)
        const final = schedule(sample, numbers, (s) => {
          const text = `${s.trace.map((s) => printStep(s)).join('; ')}\n${print2(s.kernel, { bodyOnly: true })}`
          try {
            verify2(s.kernel)
            expect(run(s.kernel, sample.data)).toEqual(expected)
            expect(run(s.kernel, sample.data, 'backward')).toEqual(expected)
            expect(run(s.kernel, sample.data, 'threads')).toEqual(expected)
          } catch (e) {
            throw new Error(`after ${text}\n${e instanceof Error ? e.message : e}`)
          }
        })
        for (const s of final.trace) reached.set(s.kind, (reached.get(s.kind) ?? 0) + 1)
      }),
      { numRuns: RUNS },
    )
    // Merging, instructions and requirements need more than luck, and have tests of their own.
    const others = ['merge', 'tensorize', 'require']
    for (const kind of LONG ? Object.keys(LOOP_STEPS) : [])
      if (!others.includes(kind)) expect.soft(reached.get(kind) ?? 0, kind).toBeGreaterThan(0)
  })

  test('round-trip: undo, replay and JSON', () => {
    fc.assert(
      fc.property(samples, many, (sample, numbers) => {
        const states = [start(sample.kernel)]
        const final = schedule(sample, numbers, (s) => states.push(s))
        for (let s = final, k = states.length - 1; k > 0; k--) {
          s = undo(s)
          expect(s.kernel).toBe(states[k - 1]!.kernel)
          expect(s.trace).toEqual(states[k - 1]!.trace)
          expect(s.consumed).toEqual(states[k - 1]!.consumed)
        }
        const trace = JSON.parse(JSON.stringify(final.trace)) as LoopStep[]
        expect(trace).toEqual(final.trace)
        expect(replay(sample.kernel, trace).kernel).toEqual(final.kernel)
      }),
      { numRuns: runs(60) },
    )
  })
})

/** Updates of `Y` made safe in one way or the other, loops on hardware where that is legal, some steps, one launch. */
const mergers = fc.record({
  sample: samples,
  safe: fc.constantFrom('atomic', 'combine', 'neither'),
  threads: fc.boolean(),
  tile: fc.integer({ min: 1, max: 3 }),
  before: fc.array(choices, { maxLength: 4 }),
  later: fc.array(choices, { maxLength: 4 }),
})

function tryAll(state: ScheduleState, steps: readonly LoopStep[]): ScheduleState {
  const next = after(state, ...steps)
  return typeof next === 'string' ? state : next
}

const topNests = (s: ScheduleState): For[] => s.kernel.body.flatMap((x) => (x.kind === 'for' ? [x] : []))

describe('nests in one launch', () => {
  test('give the results of sequential nests, and threads do not race', () => {
    let merged = 0
    fc.assert(
      fc.property(mergers, ({ sample, safe, threads, tile, before, later }) => {
        const expected = run(sample.kernel, sample.data)
        let state = start(sample.kernel)
        if (safe !== 'neither') state = tryAll(state, [{ kind: safe, buffer: 'Y' }])
        for (const n of before) state = tryAll(state, [stepFor(state, n)])
        for (const top of topNests(state)) {
          const [o, i] = [`${top.var}_o`, `${top.var}_i`]
          const bind = (loop: string, to: ThreadAxis) => ({ loop: `${top.nest}.${loop}`, to })
          state = tryAll(
            state,
            threads
              ? [
                  { kind: 'split', loop: { var: top.var }, by: tile, into: [o, i] },
                  { kind: 'bind', bindings: [bind(o, 'block.x'), bind(i, 'thread.x')] },
                ]
              : [{ kind: 'bind', bindings: [{ loop: { var: top.var }, to: 'block.x' }] }],
          )
        }
        const nests = topNests(state).flatMap((l) => (l.mode.kind === 'bind' ? [l.nest] : []))
        const before_ = state
        state = tryAll(state, [{ kind: 'merge', nests }])
        if (state === before_) return
        merged++
        for (const n of later) state = tryAll(state, [stepFor(state, n)])
        try {
          verify2(state.kernel)
          for (const order of ['forward', 'backward', 'threads'] as const)
            expect(withoutFills(run(state.kernel, sample.data, order), expected)).toEqual(expected)
          expect(withoutFills(runPlan(state.kernel, sample.data), expected)).toEqual(expected)
        } catch (e) {
          if (e instanceof SptError) return
          const text = `${state.trace.map((s) => printStep(s)).join('; ')}\n${print2(state.kernel, { bodyOnly: true })}`
          throw new Error(`after ${text}\n${e instanceof Error ? e.message : e}`)
        }
      }),
      { numRuns: RUNS },
    )
    expect(merged).toBeGreaterThan(0)
  })
})
