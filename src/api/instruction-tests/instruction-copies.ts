/**
 * Tests of instructions that copy from global to shared memory: a larger copy, tile by tile, whose rows are longer than the tile's.
 * Adjacent tiles are copied last, so that a tile that is too wide overwrites existing data.
 *
 * The test of zero-filling copies uses every second row, in alternating iterations. Their sums reveal stale elements of the previous
 * iteration, and loads of elements that do not exist.
 */

import { iteratorsOf } from '../../analysis/instructions/operand-digits.ts'
import { Names } from '../../ir/expressions/bound-names.ts'
import type { Instr } from '../../ir/instructions/instr.ts'
import { DTYPE_BYTES } from '../../ir/values/dtype.ts'
import type { LoopStep } from '../../schedule/steps/steps.ts'
import { type InstructionTest, testOf } from './instruction-data.ts'
import { runOf, SMALL, TWICE } from './instruction-layout.ts'

/** Returns the test of a copy instruction; `null` for other instructions. `filled`: test zero-filling of missing elements. */
export function copyTest(instr: Instr, seed: number, filled = false): InstructionTest | null {
  const { body, operands } = instr
  const to = operands.find((o) => o.mode === 'write')
  const from = operands.find((o) => o.mode === 'read')
  if (body.kind !== 'store' || body.value.kind !== 'load' || operands.length !== 2 || !to || !from)
    return null
  const inOrder = instr.iters.map((i) => i.name).join()
  if ([to, from].some((o) => iteratorsOf(o, instr).join() !== inOrder)) return null
  if (to.scope !== 'shared' || to.memory || from.scope !== 'global' || from.mapped) return null

  const names = new Names([from.name, to.name])
  const [tile, round, row] = [names.fresh('tile'), names.fresh('round'), names.fresh('row')]
  const last = instr.iters.length - 1
  const bytes = to.shape.reduce((n, x) => n * x, DTYPE_BYTES[to.dtype])
  const own = instr.iters.map((i, d) => {
    const twice = d === last || (d === last - 1 && bytes * TWICE * TWICE <= SMALL)
    const name = names.fresh(i.name)
    return { name, by: i.extent, twice, extent: i.extent * (twice ? TWICE : 1) }
  })
  const rows = last === 0 || filled
  const dims = [...(rows ? [{ name: row, extent: TWICE }] : []), ...own]
  const around = dims.map((d, k) => ({
    name: names.fresh(`${from.name}_axis`),
    extent: d.extent + (k === dims.length - 1 ? runOf(from) : 1),
  }))
  const outside = [{ name: tile, extent: TWICE }, ...(filled ? [{ name: round, extent: 2 * TWICE }] : [])]
  const index = [...outside, ...dims].map((d) => d.name).join(', ')
  const written = filled ? [tile, ...own.map((d) => d.name)].join(', ') : index
  const kinds = [...outside, ...dims]
    .map((d) => (filled && [round, row].includes(d.name) ? 'R' : 'S'))
    .join('')
  const text = [
    'kernel test() {',
    ...[...outside, ...dims, ...around].map((a) => `  axis ${a.name} = dense_fixed(${a.extent})`),
    `  buffer ${from.name}: ${from.dtype}[${[...outside, ...around].map((a) => a.name).join(', ')}] in`,
    `  buffer ${to.name}: ${to.dtype}[${written}] out`,
    `  iterate body [${index}] as ${kinds}${filled ? ` where ((${tile} + ${round} + ${row}) % 2 == 0)` : ''} {`,
    `    ${to.name}[${written}] ${filled ? (to.dtype === 'bool' ? 'or' : '+') : ''}= ${from.name}[${index}]`,
    '  }',
    '}',
  ].join('\n')

  const into = `${from.name}_held`
  const loops = own.map(({ name, by, twice }) => {
    const whole = `${into}.${name}`
    const [outer, inner] = [`${name}_outer`, `${name}_inner`].map((n) => names.fresh(n)) as [string, string]
    return { whole, by, twice, outer, inner: twice ? inner : whole }
  })
  const outer = [...loops.filter((l) => l.twice).map((l) => l.outer)].reverse()
  const steps: LoopStep[] = [
    { kind: 'bind', bindings: [{ loop: tile, to: 'block.x' }] },
    // A sum in a cached accumulator includes the zero-filled elements.
    ...(filled ? [{ kind: 'cache_write', buffer: to.name, at: tile, scope: 'register' } as const] : []),
    {
      kind: 'cache_read',
      buffer: from.name,
      at: filled ? round : tile,
      scope: 'shared',
      ...(filled ? { padded: 0 } : {}),
      into,
    },
    ...loops
      .filter((l) => l.twice)
      .map((l): LoopStep => ({ kind: 'split', loop: l.whole, by: l.by, into: [l.outer, l.inner] })),
    {
      kind: 'reorder',
      loops: [...outer, ...(rows ? [`${into}.${row}`] : []), ...loops.map((l) => l.inner)],
    },
    { kind: 'tensorize', loop: loops[0]!.inner, instr },
  ]
  const shape = (filled ? own : dims).map((d) => d.extent)
  const arrays = [
    { ...from, role: 'in' as const, shape: [...outside, ...around].map((a) => a.extent) },
    { ...to, role: 'out' as const, shape: [TWICE, ...shape] },
  ]
  return testOf(instr, text, steps, arrays, seed)
}
