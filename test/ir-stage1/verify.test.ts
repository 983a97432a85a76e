/** Each invariant, broken once. */
import { describe, expect, test } from 'vitest'
import { InternalError } from '../../src/ast/diagnostics/diagnostic.ts'
import type { Iteration, Kernel1, Reduce1 } from '../../src/ir/coordinates/stage1.ts'
import { constant, int, load, lt, variable } from '../../src/ir/expressions/expr.ts'
import { verify1 } from '../../src/verifiers/stage1.ts'
import { PROGRAMS } from '../elaborate/programs.ts'
import { kernelOf } from '../elaborate/support.ts'

const base = kernelOf(PROGRAMS.matmul!)
const agg = base.body[0] as Iteration
const sum = agg.body[0] as Reduce1
const withBody = (body: Kernel1['body']): Kernel1 => ({ ...base, body })
const inside = (body: Iteration['body']): Kernel1 => withBody([{ ...agg, body }])
const axis = (name: string) => base.axes.find((a) => a.name === name)!

const BROKEN: Readonly<Record<string, Kernel1>> = {
  'has a name that is taken': { ...base, axes: [...base.axes, axis('i')] },
  'is no stored axis before it': { ...base, axes: base.axes.toReversed() },
  'which is no size': {
    ...base,
    axes: base.axes.map((a) => (a.name === 'f' ? { ...axis('f'), extent: variable('q') } : a)) as never,
  },
  'has j before its parent': {
    ...base,
    buffers: base.buffers.map((b) => (b.name === 'A' ? { ...b, axes: ['j', 'i'] } : b)),
  },
  twice: { ...base, buffers: base.buffers.map((b) => (b.name === 'B' ? { ...b, axes: ['f', 'f'] } : b)) },
  'iterated outside its parent': withBody([{ ...agg, iters: agg.iters.filter((it) => it.name !== 'i') }]),
  'hides something': withBody([{ ...agg, iters: [...agg.iters, agg.iters[2]!] }]),
  'over zz, which is no axis': withBody([
    { ...agg, iters: [...agg.iters, { name: 'zz', axis: 'zz', kind: 'R' }] },
  ]),
  'is not in sight': inside([{ ...sum, values: [variable('ghost', 'f32')] }]),
  'and used as f32': inside([{ ...sum, values: [variable('i', 'f32')] }]),
  'there is no buffer Z': inside([{ ...sum, values: [load('Z', [int(0)], 'f32')] }]),
  'has 1 indices': inside([{ ...sum, values: [load('B', [int(0)], 'f32')] }]),
  'is reduced with index': inside([{ ...sum, values: [int(1)] }]),
  'the input B is written': inside([{ ...sum, targets: [load('B', [int(0), int(0)], 'f32')] }]),
  'and is assigned index': inside([{ kind: 'assign', targets: sum.targets, values: [int(1)] }]),
  'check/assign-in-reduction': inside([{ kind: 'assign', targets: sum.targets, values: sum.values }]),
  'check/spatial': inside([{ ...sum, targets: [load('C', [variable('i'), int(0)], 'f32')] }]),
  'is index': withBody([{ ...agg, where: [variable('i')] }]),
  'operands of': inside([
    {
      ...sum,
      values: [{ kind: 'binary', op: 'add', a: constant(1, 'f32'), b: variable('i'), dtype: 'f32' }],
    },
  ]),
  'does not have 1 components': inside([{ ...sum, reducer: { ...sum.reducer, identity: [] } }]),
  'search in': inside([
    {
      ...sum,
      values: [
        {
          kind: 'search',
          method: 'lower',
          buffer: 'A',
          lo: int(0),
          hi: int(1),
          value: int(0),
          dtype: 'index',
        },
      ],
    },
  ]),
}

describe('invariants of Stage I', () => {
  test('the kernel that the tests below break is valid', () => verify1(base))
  test('a condition may guard an iteration', () =>
    verify1(withBody([{ ...agg, where: [lt(variable('i'), variable('m'))] }])))
  test.each(Object.entries(BROKEN))('%s', (message, kernel) => {
    expect(() => verify1(kernel)).toThrow(InternalError)
    expect(() => verify1(kernel)).toThrow(message)
  })
})
