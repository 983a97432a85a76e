/**
 * Generated tests of declared instructions: the body as a kernel, computed by the reference, and a schedule that uses the instruction. If
 * body and hardware disagree, or a memory's map is wrong, the results differ (`instruction-verify.ts` compares them).
 *
 * Invariants, so that any deviation from the body is detected:
 * - Operands in global memory are tiles at several places of larger arrays with longer rows, at every offset that `aligned` permits.
 * Surrounding elements have distinct values, and must not change.
 * - Operands in registers and shared memory are used by several executions, so an instruction that modifies its inputs spoils the next
 * one.
 * - Atomic updates of many threads go to the same few elements.
 */
import { digitsOf, iteratorsOf } from '../analysis/instructions/operand-digits.ts'
import { sameMemory } from '../analysis/instructions/operands.ts'
import { expectArgument, isRecord } from '../api/inputs/argument-checks.ts'
import { Names } from '../ir/expressions/bound-names.ts'
import { type Expr, load } from '../ir/expressions/expr.ts'
import { mentions, rewriteExpr } from '../ir/expressions/expr-tree.ts'
import type { Instr, Memory, Operand } from '../ir/instructions/instr.ts'
import { printExpr } from '../ir/print/print-stage2.ts'
import { DTYPE_BYTES, type Dtype } from '../ir/values/dtype.ts'
import type { LoopStep } from '../schedule/steps/step-data.ts'
import { type InstructionTest, LARGEST, testOf } from './instruction-data.ts'
import type { Loops } from './instruction-layout.ts'
import { halfOf, hasThreads, layoutOf, rowsOf, runOf, SMALL, THREADS, TWICE } from './instruction-layout.ts'

export type { InstructionTest } from './instruction-data.ts'

/** Returns the tests of an instruction: of its body, and of zero-filling if it declares that. */
export function instructionTests(
  instr: Instr,
  others: readonly Instr[] = [],
  seed = 1,
): readonly InstructionTest[] {
  const filled = instr.filled ? copyTest(unfenced(instr), seed, true) : null
  return [instructionTest(instr, others, seed), ...(filled ? [filled] : [])]
}

// The test's own copies are ordinary stores with barriers, so declarations of fences do not apply.
const unfenced = (instr: Instr): Instr => ({
  ...instr,
  operands: instr.operands.map(({ fenced: _, ...o }) => o),
})

/**
 * The packed operand; undefined if there is none. Packed arrays exist only in formats, so kernels in such formats test the instruction.
 */
export const packedOperand = (instr: Instr): Operand | undefined =>
  instr.operands.find((o) => o.packed !== undefined)

/**
 * Returns the test of an instruction's body. Opaque tiles are loaded and stored by instructions among `others`.
 * @throws SptError `schedule/…` if the instruction cannot be used on its own body
 */
export function instructionTest(declared: Instr, others: readonly Instr[] = [], seed = 1): InstructionTest {
  const isInstr = isRecord(declared) && Array.isArray(declared.operands) && isRecord(declared.body)
  expectArgument(isInstr, 'what is tested', declared, 'an instruction: program.instructions.get(name)')
  const instr = unfenced(declared)
  return copyTest(instr, seed) ?? bodyTest(instr, others, seed)
}

function bodyTest(instr: Instr, others: readonly Instr[], seed: number): InstructionTest {
  const { body } = instr
  const reduces = body.kind === 'reduce'
  const target = reduces ? body.targets[0]! : load(body.buffer, body.index, body.value.dtype)
  const written = instr.operands.find((o) => o.name === target.buffer)!
  const names = new Names([...instr.iters.map((i) => i.name), ...instr.operands.map((o) => o.name)])
  const loops: Loops = {
    tile: names.fresh('tile'),
    thread: names.fresh('thread'),
    repetition: names.fresh('again'),
    place: names.fresh('place'),
    round: names.fresh('round'),
  }
  const layouts = new Map(
    instr.operands.map((o) => [o.name, layoutOf(o, instr, o === written, loops)] as const),
  )
  const contended = instr.atomic ? contenders(instr, written.dtype) : undefined
  // Expensive bodies are executed less often; their reduction iterations also reuse the inputs.
  const work = reduces && !instr.atomic ? instr.iters.reduce((n, i) => n * i.extent, 1) : 0
  const halves = instr.operands.some((o) => o.memory?.scope === 'shared' && halfOf(o.memory, o.shape) >= 0)
  const extents = new Map([[loops.tile, contended?.blocks ?? (work > VERY_LONG ? 1 : TWICE)]])
  if (contended && hasThreads(instr)) extents.set(loops.thread, contended.threads)
  extents.set(loops.repetition, work > LONG ? 1 : TWICE)
  extents.set(loops.place, work > LONG && !halves ? 1 : TWICE)
  if (reduces && !instr.atomic) extents.set(loops.round, TWICE)
  for (const i of instr.iters) extents.set(i.name, i.extent)
  const iterated = [...extents.keys()]

  const buffers = instr.operands.map((o) => {
    const { role, dims } = layouts.get(o.name)!
    const axes = dims.map((d) => {
      if (d.loop) return d.loop
      const name = names.fresh(`${o.name}_axis`)
      extents.set(name, d.extent!)
      return name
    })
    return { name: o.name, dtype: o.dtype, role, axes, below: o.below, ascending: o.ascending }
  })
  const index = (e: Expr): Expr =>
    rewriteExpr(e, (x) =>
      x.kind === 'load'
        ? load(
            x.buffer,
            layouts.get(x.buffer)!.dims.map((d) => index(d.index)),
            x.dtype,
          )
        : undefined,
    )
  const result = index(target)
  const value = index(reduces ? body.values[0]! : body.value)
  const kinds = iterated.map((a) => (a !== loops.thread && mentions(result, a) ? 'S' : 'R'))
  const text = [
    'kernel test() {',
    ...[...extents].map(([a, n]) => `  axis ${a} = dense_fixed(${n})`),
    ...buffers.map((b) => `  buffer ${b.name}: ${b.dtype}[${b.axes.join(', ')}] ${b.role}`),
    `  iterate body [${iterated.join(', ')}] as ${kinds.join('')} {`,
    `    ${printExpr(result)} ${reduces ? body.reducer.name : ''}= ${printExpr(value)}`,
    '  }',
    '}',
  ].join('\n')

  const inner = extents.has(loops.thread) ? loops.thread : loops.tile
  const steps: LoopStep[] = [
    ...(instr.atomic ? [{ kind: 'atomic', buffer: target.buffer } as const] : []),
    { kind: 'bind', bindings: [{ loop: loops.tile, to: 'block.x' }] },
    ...(inner === loops.thread
      ? [{ kind: 'bind', bindings: [{ loop: inner, to: 'thread.x' }] } as const]
      : []),
    ...instr.operands.flatMap((o): LoopStep[] => {
      if (o.scope === 'global') return []
      const into = `${o.name}_held`
      const place = { buffer: o.name, scope: o.scope, into, ...(o.memory && { memory: o.memory }) }
      const carrier = o.memory?.opaque ? carrierOf(o.memory, o === written, others) : undefined
      const loop = `${into}.${iteratorsOf(o, instr)[0]}`
      return [
        o === written
          ? { kind: 'cache_write', at: loops.place, ...place }
          : { kind: 'cache_read', at: inner, ...place, ...rowsOf(o, instr), ...boundingOf(o, instr) },
        ...(carrier ? [{ kind: 'tensorize', loop, instr: carrier } as const] : []),
      ]
    }),
    { kind: 'tensorize', loop: `body.${instr.iters[0]!.name}`, instr },
  ]
  const arrays = buffers.map((b) => ({ ...b, shape: b.axes.map((a) => extents.get(a)!) }))
  return testOf(instr, text, steps, arrays, seed)
}

/** Bounds indices that depend on elements of other operands, so that they are in range for any values. */
const boundingOf = (o: Operand, instr: Instr): { readonly bounding?: boolean } =>
  digitsOf(o, instr).some((digits) => digits.some((d) => d.element)) ? { bounding: true } : {}

/** Number of executions of a body from which tests repeat it less often (`LONG`), and from which they use one block (`VERY_LONG`). */
const LONG = 1 << 14
const VERY_LONG = 1 << 17

/** Numbers of blocks and threads that update one element: enough to reveal lost updates, and few enough for exact sums. */
function contenders(instr: Instr, dtype: Dtype): { readonly blocks: number; readonly threads: number } {
  const most = EXACT[dtype] ?? Number.POSITIVE_INFINITY
  const threads = hasThreads(instr) ? THREADS : 1
  const updates = Math.floor(most / LARGEST) - 1
  return { threads, blocks: Math.max(1, Math.min(BLOCKS, Math.floor(updates / (TWICE * threads)))) }
}

const BLOCKS = 64
/** Largest integer up to which all integers are representable. */
const EXACT: Partial<Record<Dtype, number>> = { f16: 2 ** 11, bf16: 2 ** 8, i8: 2 ** 7, u8: 2 ** 8 }

/** The instruction that copies tiles of a memory to global memory (`out`), or from there; undefined if there is none. */
function carrierOf(memory: Memory, out: boolean, others: readonly Instr[]): Instr | undefined {
  for (const x of others) {
    const [to, from] = [x.operands.find((o) => o.mode === 'write'), x.operands.find((o) => o.mode === 'read')]
    const [tile, place] = out ? [from, to] : [to, from]
    const copies = x.body.kind === 'store' && x.body.value.kind === 'load' && x.operands.length === 2
    if (!copies || place?.scope !== 'global' || !tile?.memory || !sameMemory(tile.memory, memory)) continue
    if (iteratorsOf(tile, x).join() === iteratorsOf(place, x).join()) return x
  }
  return undefined
}

// Tests of instructions that copy from global to shared memory: a larger copy, tile by tile, whose rows are longer than the tile's.
// Adjacent tiles are copied last, so that a tile that is too wide overwrites existing data.
//
// The test of zero-filling copies uses every second row, in alternating iterations. Their sums reveal stale elements of the previous
// iteration, and loads of elements that do not exist.

/** Returns the test of a copy instruction; `null` for other instructions. `filled`: test zero-filling of missing elements. */
function copyTest(instr: Instr, seed: number, filled = false): InstructionTest | null {
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
      ...(filled && { padded: 0 }),
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
