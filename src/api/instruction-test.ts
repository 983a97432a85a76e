/**
 * The generated test of a declared instruction: its body as a kernel, which the reference computes, and a schedule
 * that puts the operands where the instruction wants them and lets it do the rest. Where body and hardware disagree,
 * or a memory's map is wrong, a device's result differs; `instruction-verify.ts` compares.
 *
 * Invariants, so that a text which does anything else than its body is seen:
 * - Operands in global memory are tiles at several places of larger arrays, whose rows are longer than theirs, and begin
 *   wherever `aligned` lets them. Elements around them have values of their own, which nothing may change.
 * - Operands in registers and shared memory serve several executions: one that changes what it reads spoils the next.
 * - What many threads update atomically are the same few elements.
 */

import { digitsOf, iteratorsOf } from '../analysis/instructions/operand-digits.ts'
import { sameMemory } from '../analysis/instructions/operands.ts'
import { Names } from '../ir/bound-names.ts'
import type { Dtype } from '../ir/dtype.ts'
import { type Expr, load } from '../ir/expr.ts'
import { mentions, rewriteExpr } from '../ir/expr-tree.ts'
import type { Instr, Memory, Operand } from '../ir/instr.ts'
import { printExpr } from '../ir/print-stage2.ts'
import type { LoopStep } from '../schedule/steps.ts'
import { expectArgument, isRecord } from './argument-checks.ts'
import { copyTest } from './instruction-copies.ts'
import { type InstructionTest, LARGEST, testOf } from './instruction-data.ts'
import { halfOf, hasThreads, type Loops, layoutOf, rowsOf, THREADS, TWICE } from './instruction-layout.ts'

export type { InstructionTest } from './instruction-data.ts'

/** The tests of an instruction: of what it does, and of what it fills where that is not there. */
export function instructionTests(
  instr: Instr,
  others: readonly Instr[] = [],
  seed = 1,
): readonly InstructionTest[] {
  const filled = instr.filled ? copyTest(unfenced(instr), seed, true) : null
  return [instructionTest(instr, others, seed), ...(filled ? [filled] : [])]
}

// The test's own copies are ordinary ones: threads meet behind them, and what is said of fences is left out.
const unfenced = (instr: Instr): Instr => ({
  ...instr,
  operands: instr.operands.map(({ fenced: _, ...o }) => o),
})

/** What is packed are arrays of formats alone: kernels in such formats test an instruction that takes it. */
export const packedOperand = (instr: Instr): Operand | undefined =>
  instr.operands.find((o) => o.packed !== undefined)

/**
 * Tiles that are objects of a target are brought and fetched by instructions among `others`.
 * @throws SptError `schedule/…` where the instruction cannot be used on a kernel that is its body
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
  // What takes the reference long is done less often; its rounds use what they read again as well.
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
      const place = { buffer: o.name, scope: o.scope, into, ...(o.memory ? { memory: o.memory } : {}) }
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

/** What elements of other operands could say is there, whatever they say. */
const boundingOf = (o: Operand, instr: Instr): { readonly bounding?: boolean } =>
  digitsOf(o, instr).some((digits) => digits.some((d) => d.element)) ? { bounding: true } : {}

/** Executions of the body. */
const LONG = 1 << 14
const VERY_LONG = 1 << 17

/** So many updates of one element that none is lost by chance, and that sums of them are exact. */
function contenders(instr: Instr, dtype: Dtype): { readonly blocks: number; readonly threads: number } {
  const most = EXACT[dtype] ?? Number.POSITIVE_INFINITY
  const threads = hasThreads(instr) ? THREADS : 1
  const updates = Math.floor(most / LARGEST) - 1
  return { threads, blocks: Math.max(1, Math.min(BLOCKS, Math.floor(updates / (TWICE * threads)))) }
}

const BLOCKS = 64
/** Up to where all whole numbers are there. */
const EXACT: Partial<Record<Dtype, number>> = { f16: 2 ** 11, bf16: 2 ** 8, i8: 2 ** 7, u8: 2 ** 8 }

/** The instruction that copies tiles of a memory to global memory, or from there. */
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
