/**
 * Schedules whose lanes exchange registers while rows are of different lengths. No device of these tests can do that, so
 * the plans for a warp are interpreted.
 */
import { describe, expect, test } from 'vitest'
import { poisonValue } from '../../src/interpret/memory-cells.ts'
import { interpretPlan } from '../../src/interpret/stage3.ts'
import type { Kernel3 } from '../../src/ir/statements/loops.ts'
import { evaluate } from '../../src/ir/values/evaluate.ts'
import { dense, load } from '../../src/node.ts'
import { type Bound, bindInputs } from '../../src/run/bind/index.ts'
import { buffersOf, readTensor } from '../../src/run/bind/results/gather-results.ts'
import { expectedOf } from '../../src/run/bind/results/reference-inputs.ts'
import type { ValueArray } from '../../src/storage/tensor.ts'
import { integers, matrix, patterns } from '../support/kernels.ts'
import { statementsOf } from '../support/plans.ts'

/** What stands in the stored parts of an output, in the caller's coordinates. */
function interpreted(plan: Kernel3, bound: Bound, output: string) {
  const memory = new Map(
    plan.buffers.map((b) => {
      const given = bound.arrays.get(b.name)
      const n = Math.max(0, evaluate(b.shape[0]!, bound.params))
      return [b.name, given ? Array.from(given) : new Array<number>(n).fill(poisonValue(b.dtype))]
    }),
  )
  interpretPlan(plan, memory, bound.params)
  const parts = buffersOf(bound.kernel, output)
  const stored = new Map<string, ValueArray>(parts.map((p) => [p, Float32Array.from(memory.get(p)!)]))
  return readTensor(bound, output, stored)
}

const program = await load('kernels/sddmm.spt')

describe.each<[kernel: string, schedule: string, d: number, ...args: number[]]>([
  ['sddmm', 'rows', 8, 8, 3, 2, 2],
  ['sddmm', 'rows', 20, 20, 8, 3, 4],
  ['sddmm', 'rows_by_length', 8, 8, 4, 2, 2, 2],
  ['sddmm', 'rows_by_length', 33, 33, 0, 4, 4, 8, 1],
  ['sddmm_pattern', 'rows', 12, 12, 4, 4, 2],
])('%s.%s, d = %i', (name, schedule, d, ...args) => {
  const { compilation } = program.kernel(name).schedule(schedule, ...args)
  const plan = compilation.planFor({ lanes: 32 })

  test('reduces by shuffles, without a barrier', () => {
    expect(statementsOf(plan, (s) => s.kind === 'barrier')).toEqual([])
    expect(statementsOf(plan, (s) => s.kind === 'let' && s.lane !== undefined).length).toBeGreaterThan(0)
  })

  test.each(patterns().map((p) => [p.name, p] as const))('%s', (_, p) => {
    const where = name === 'sddmm' ? { A: matrix(p, integers(p.rows.length, 2)) } : { j: matrix(p, null) }
    const X = dense([p.m, d], integers(p.m * d, 3))
    const Y = dense([p.n, d], integers(p.n * d, 4))
    const bound = bindInputs(compilation.kernel, { tensors: { ...where, X, Y } })
    const want = expectedOf(compilation.source, bound).buffers.C!
    expect([...interpreted(plan, bound, 'C').values!]).toEqual([...want.values])
  })
})
