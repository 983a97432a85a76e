/**
 * Tensor maps (TMA descriptors) of a launch. Buffers that a launch describes to its device as matrices, whose boxes
 * instructions move.
 */
import type { CallPiece } from '../ir/instr-call.ts'
import type { Launch } from '../ir/loops.ts'
import { keyOf } from '../ir/structural-equality.ts'
import { piecesOf, walkStmts } from '../ir/tree.ts'

export type MatrixUse = Extract<CallPiece, { kind: 'map' }>

/** Each description once, in the order of the text. */
export function matricesOf(launch: Launch): readonly MatrixUse[] {
  const found = new Map<string, MatrixUse>()
  walkStmts(launch.body, (s) => {
    if (s.kind === 'instr') for (const p of piecesOf(s)) if (p.kind === 'map') found.set(matrixName(p), p)
  })
  return [...found.values()]
}

/** Name of a matrix descriptor: equal for equal descriptors, and distinct from the kernel's names. */
export function matrixName({ buffer, matrix }: MatrixUse): string {
  const { rows, columns, box, swizzle } = matrix
  return `${buffer} ${box.join('x')} ${swizzle} ${keyOf(rows)} ${keyOf(columns)}`
}
