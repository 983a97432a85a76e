/**
 * Tensor maps (TMA descriptors) of a launch: buffers that are described to the device as matrices, whose boxes instructions copy.
 */

import { keyOf } from '../ir/expressions/structural-equality.ts'
import type { CallPiece } from '../ir/instructions/instr-call.ts'
import type { Launch } from '../ir/statements/loops.ts'
import { piecesOf, walkStmts } from '../ir/statements/tree.ts'

export type MatrixUse = Extract<CallPiece, { kind: 'map' }>

/** Distinct tensor maps of a launch, in source order. */
export function matricesOf(launch: Launch): readonly MatrixUse[] {
  const uses = new Map<string, MatrixUse>()
  walkStmts(launch.body, (s) => {
    if (s.kind === 'instr') for (const p of piecesOf(s)) if (p.kind === 'map') uses.set(matrixName(p), p)
  })
  return [...uses.values()]
}

/** Name of a matrix descriptor: equal for equal descriptors, and distinct from the kernel's names. */
export function matrixName({ buffer, matrix }: MatrixUse): string {
  const { rows, columns, box, swizzle } = matrix
  return `${buffer} ${box.join('x')} ${swizzle} ${keyOf(rows)} ${keyOf(columns)}`
}
