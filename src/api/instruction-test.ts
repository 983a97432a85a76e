/**
 * The generated test of a declared instruction: its body as a kernel, which the reference computes, and a schedule
 * that puts the operands where the instruction wants them and lets it do the rest. Where body and hardware disagree,
 * or a memory's map is wrong, a device's result differs.
 */
import { Random } from '../bind/random.ts'
import type { Inputs } from '../bind/types.ts'
import { encoder, newValues } from '../formats/values.ts'
import type { Dtype } from '../ir/dtype.ts'
import { add, type Expr, int, load, mod, variable } from '../ir/expr.ts'
import { rewriteExpr, substitute } from '../ir/expr-tree.ts'
import { type Instr, type Memory, SLOT } from '../ir/instr.ts'
import { iteratorsOf, sameMemory } from '../ir/instr-operands.ts'
import { printExpr } from '../ir/print2.ts'
import type { LoopStep } from '../schedule/steps.ts'
import type { Kernel } from './kernel.ts'
import { parseProgram } from './program.ts'

export interface InstructionTest {
  readonly kernel: Kernel
  readonly inputs: Inputs
}

/** Blocks, and rounds that reduce into one tile: accumulators are read as well as written. */
const TILES = 2
const ROUNDS = 2

/**
 * Tiles that are objects of a target are brought and fetched by instructions among `others`.
 * @throws SptError `schedule/…` where the instruction cannot be used on a kernel that is its body
 */
export function instructionTest(instr: Instr, others: readonly Instr[] = [], seed = 1): InstructionTest {
  const { body } = instr
  const reduces = body.kind === 'reduce'
  const target = reduces ? body.targets[0]! : load(body.buffer, body.index, body.value.dtype)
  const taken = new Set([...instr.iters.map((i) => i.name), ...instr.operands.map((o) => o.name)])
  const [tile, round] = ['tile', 'round'].map((base) => fresh(base, taken)) as [string, string]
  // Atomic updates meet in one element; the others have tiles of their own.
  const outer = (operand: string): readonly string[] => {
    const written = operand === target.buffer
    if (instr.atomic) return written ? [] : [tile]
    return written || !reduces ? [tile] : [tile, round]
  }
  const index = (e: Expr): Expr =>
    rewriteExpr(e, (x) =>
      x.kind === 'load'
        ? load(x.buffer, [...outer(x.buffer).map((v) => variable(v)), ...x.index], x.dtype)
        : undefined,
    )
  const axes = new Map<string, number>([[tile, TILES]])
  if (reduces && !instr.atomic) axes.set(round, ROUNDS)
  for (const i of instr.iters) axes.set(i.name, i.extent)
  const kinds = [...axes.keys()].map((a) => {
    if (a === tile) return instr.atomic ? 'R' : 'S'
    return a === round || instr.iters.some((i) => i.name === a && i.reduce) ? 'R' : 'S'
  })
  const value = index(reduces ? body.values[0]! : body.value)
  const text = [
    'kernel test() {',
    ...[...axes].map(([a, n]) => `  axis ${a} = dense_fixed(${n})`),
    ...instr.operands.map((o) => {
      const own = iteratorsOf(o, instr)
      const role = o.name === target.buffer ? 'out' : 'in'
      return `  buffer ${o.name}: ${o.dtype}[${[...outer(o.name), ...own].join(', ')}] ${role}`
    }),
    `  iterate body [${[...axes.keys()].join(', ')}] as ${kinds.join('')} {`,
    `    ${printExpr(index(target))} ${reduces ? body.reducer.name : ''}= ${printExpr(value)}`,
    '  }',
    '}',
  ].join('\n')
  const inner = reduces && !instr.atomic ? round : tile
  const steps: LoopStep[] = [
    ...(instr.atomic ? [{ kind: 'atomic', buffer: target.buffer } as const] : []),
    { kind: 'bind', bindings: [{ loop: tile, to: 'block.x' }] },
    ...instr.operands.flatMap((o): LoopStep[] => {
      if (o.scope === 'global') return []
      const into = `${o.name}_held`
      const place = { buffer: o.name, scope: o.scope, into, ...(o.memory ? { memory: o.memory } : {}) }
      const written = o.name === target.buffer
      const carrier = o.memory?.opaque ? carrierOf(o.memory, written, others) : undefined
      const loop = `${into}.${iteratorsOf(o, instr)[0]}`
      return [
        written ? { kind: 'cache_write', at: tile, ...place } : { kind: 'cache_read', at: inner, ...place },
        ...(carrier ? [{ kind: 'tensorize', loop, instr: carrier } as const] : []),
      ]
    }),
    { kind: 'tensorize', loop: `body.${instr.iters[0]!.name}`, instr },
  ]
  const kernel = parseProgram(text, `${instr.name}.spt`)
    .kernel()
    .apply(steps.map((step) => ({ stage: 2, step })))
  const random = new Random(seed)
  const inputs = instr.operands.flatMap((o) => {
    if (o.name === target.buffer) return []
    const shape = [...outer(o.name).map((v) => axes.get(v)!), ...o.shape]
    return [
      [o.name, { kind: 'dense', shape, values: integers(o.dtype, shape, random), dtype: o.dtype }] as const,
    ]
  })
  return { kernel, inputs: { tensors: Object.fromEntries(inputs) } }
}

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

/** The same declaration with the elements of one register memory in other slots: a test has to fail. */
export function mistaken(instr: Instr, operand: string): Instr {
  const moved = (m: Memory): Memory => {
    const next = mod(add(variable(SLOT), int(1)), int(m.size))
    const element = m.element.map((e) => substitute(e, new Map([[SLOT, next]])))
    return { ...m, name: `${m.name}_moved`, element }
  }
  return {
    ...instr,
    operands: instr.operands.map((o) =>
      o.name === operand && o.memory?.scope === 'register' ? { ...o, memory: moved(o.memory) } : o,
    ),
  }
}

/** The register memories of an instruction that could be declared otherwise, by operand. */
export const movable = (instr: Instr): readonly string[] =>
  instr.operands.flatMap((o) => (o.memory?.scope === 'register' && o.memory.size > 1 ? [o.name] : []))

function fresh(base: string, taken: Set<string>): string {
  let name = base
  while (taken.has(name)) name += '_'
  taken.add(name)
  return name
}

/** Whole numbers from -3 to 3, so that every sum is exact in any order. */
function integers(dtype: Dtype, shape: readonly number[], random: Random) {
  const length = shape.reduce((a, b) => a * b, 1)
  const out = newValues(dtype, length)
  const write = encoder(dtype)
  const unsigned = dtype === 'u32' || dtype === 'u8' || dtype === 'bool'
  for (let k = 0; k < length; k++) {
    const x = unsigned ? random.below(2) : random.below(7) - 3
    out[k] = write ? write(x, k) : x
  }
  return out
}
