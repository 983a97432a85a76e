/** Collects the buffers and parameters of each launch of a plan: the arguments of its entry. */
import { freeVars } from '../ir/expressions/expr-tree.ts'
import { keyOf } from '../ir/expressions/structural-equality.ts'
import type { CallPiece } from '../ir/instructions/instr-call.ts'
import { mapSame } from '../ir/lists.ts'
import { accessesOf, type BufferAccess } from '../ir/statements/accesses.ts'
import { freeVarsOf } from '../ir/statements/bindings.ts'
import type { Buffer, Kernel3, Launch } from '../ir/statements/loops.ts'
import { piecesOf, stmtsOf } from '../ir/statements/tree.ts'
import type { ArgSpec } from './module.ts'

/** Buffers and scalars that one launch accesses. */
export interface LaunchUse {
  readonly launch: Launch
  readonly buffers: readonly { readonly buffer: Buffer; readonly access: 'read' | 'read_write' }[]
  readonly scalars: Kernel3['params']
}

/** Buffers and parameters of each launch, in the plan's order. */
export function launchUses(plan: Kernel3): LaunchUse[] {
  return plan.steps.flatMap((step) => (step.kind === 'launch' ? [launchUse(plan, step)] : []))
}

/** The plan with `f` applied to its launches; the same plan if none changes. */
export function mapLaunches(plan: Kernel3, f: (launch: Launch) => Launch): Kernel3 {
  const steps = mapSame(plan.steps, (s) => (s.kind === 'launch' ? f(s) : s))
  return steps === plan.steps ? plan : { ...plan, steps }
}

function launchUse(plan: Kernel3, launch: Launch): LaunchUse {
  const read = new Set<string>()
  const written = new Set<string>()
  for (const a of accessesOf(launch.body))
    if (!isMovedByMap(a)) (a.mode === 'write' ? written : read).add(a.buffer)
  // The kernel decodes its block index from the grid's extents.
  const vars = new Set([...freeVarsOf(launch.body), ...launch.grid.flatMap((e) => [...freeVars(e)])])
  return {
    launch,
    buffers: plan.buffers.flatMap((buffer): LaunchUse['buffers'] =>
      written.has(buffer.name)
        ? [{ buffer, access: 'read_write' }]
        : read.has(buffer.name)
          ? [{ buffer, access: 'read' }]
          : [],
    ),
    scalars: plan.params.filter((p) => vars.has(p.name)),
  }
}

/** True if an instruction accesses the buffer through a tensor map only, without its address. */
function isMovedByMap({ stmt: s, buffer, whole }: BufferAccess): boolean {
  const pieces = whole && s.kind === 'instr' ? piecesOf(s).filter((p) => p.kind !== 'value') : []
  const bufferPieces = pieces.filter((p) => p.buffer === buffer)
  return bufferPieces.length > 0 && bufferPieces.every((p) => p.kind === 'map')
}

export const argsOf = (use: LaunchUse): ArgSpec[] => [
  ...use.buffers.map(
    (b): ArgSpec => ({ kind: 'buffer', name: b.buffer.name, dtype: b.buffer.dtype, access: b.access }),
  ),
  ...use.scalars.map((p): ArgSpec => ({ kind: 'scalar', name: p.name, dtype: p.dtype })),
]

/**
 * Tensor maps (TMA descriptors) of a launch: buffers that are described to the device as matrices, whose boxes instructions copy.
 */
export type MatrixUse = Extract<CallPiece, { kind: 'map' }>

/** Distinct tensor maps of a launch, in source order. */
export function matricesOf(launch: Launch): readonly MatrixUse[] {
  const maps = stmtsOf(launch.body, 'instr').flatMap((s) => piecesOf(s).filter((p) => p.kind === 'map'))
  return [...new Map(maps.map((p) => [matrixName(p), p])).values()]
}

/** Name of a matrix descriptor: equal for equal descriptors, and distinct from the kernel's names. */
export function matrixName({ buffer, matrix }: MatrixUse): string {
  const { rows, columns, box, swizzle } = matrix
  return `${buffer} ${box.join('x')} ${swizzle} ${keyOf(rows)} ${keyOf(columns)}`
}
