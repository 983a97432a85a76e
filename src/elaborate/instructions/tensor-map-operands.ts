/**
 * Operands that are boxes of matrices in global memory (tensor maps), and the layout of such boxes in shared memory.
 */
import type * as Ast from '../../ast/nodes/nodes.ts'
import { sameExpr } from '../../ir/expressions/structural-equality.ts'
import { coordinateName, type Instr, type Memory, type Operand } from '../../ir/instructions/instr.ts'
import { DTYPE_BYTES, type Dtype } from '../../ir/values/dtype.ts'
import { evaluate } from '../../ir/values/evaluate.ts'
import { report } from '../diagnostics.ts'
import { constantOf } from './memories.ts'

/** Bytes of a chunk, which swizzling permutes, and bytes of a line, to which the device aligns boxes. */
const CHUNK = 16
const LINE = 128
/** The maximum number of rows, and of columns, that a device moves at once. */
const MOST_IN_BOX = 256
const SWIZZLES = [32, 64, 128]

export function boxOf(o: Ast.Operand, shape: readonly (number | null)[]): Operand['mapped'] | null {
  const swizzle = o.mapped?.swizzle ? constantOf(o.mapped.swizzle, 'a swizzle') : 0
  if (swizzle === null) return null
  const place = o.memories.map((m) => m.name.name).join(' or ')
  const row = (shape[1] ?? 0) * DTYPE_BYTES[o.type.name as Dtype]
  const fits = shape.length === 2 && shape.every((n) => n !== null && n <= MOST_IN_BOX) && row % CHUNK === 0
  const swizzled = swizzle === 0 || (SWIZZLES.includes(swizzle) && row <= swizzle)
  if (place === 'global' && fits && swizzled) return { swizzle }
  const [message, expected] =
    place !== 'global'
      ? [`${o.name.name} is mapped, and in ${place}`, '`in global mapped`']
      : fits
        ? [
            `rows of ${row} bytes are not swizzled within ${swizzle}`,
            `${SWIZZLES.join(', ')} bytes, and no fewer than a row has`,
          ]
        : [
            `${o.name.name} is mapped, and no box of rows and columns that a device moves`,
            `at most ${MOST_IN_BOX} rows and columns, rows of a multiple of ${CHUNK} bytes`,
          ]
  return report('check/instr-mapped', o.span, { message, expected })
}

/**
 * The offset at which a byte of a box arrives: the number of its chunk within `swizzle` bytes changes with the number
 * of the line.
 */
const arrival = (byte: number, swizzle: number): number =>
  swizzle === 0 ? byte : byte ^ ((Math.floor(byte / LINE) % (swizzle / CHUNK)) * CHUNK)

/**
 * True if the shared memory of boxes has the layout in which they arrive (PTX ISA, "Swizzling modes"): rows one after
 * the other, swizzled as the operand declares, in a tile of a declared memory that is aligned to the period of the
 * pattern.
 */
export function boxesFit(s: Ast.Instr, operands: readonly Operand[], body: Instr['body']): boolean {
  const box = operands.find((o) => o.mapped)
  const at = operands.findIndex((o) => o.scope === 'shared')
  const to = operands[at]
  if (!box?.mapped || !to) return true
  const [place, value] =
    body.kind === 'store' ? [body.index, body.value] : [body.targets[0]!.index, body.values[0]!]
  if (value.kind !== 'load' || !value.index.every((e, d) => sameExpr(e, place[d]!))) {
    report('check/instr-mapped', s.operands.find((o) => o.name.name === box.name)!.span, {
      message: `boxes of ${box.name} arrive unchanged, and the body does not copy elements`,
      expected: 'a body that copies every element to the same place of the box',
    })
    return false
  }
  const refuse = (message: string, expected: string): false => {
    report('check/instr-mapped', s.operands[at]!.span, { message, expected })
    return false
  }
  const { swizzle } = box.mapped
  if (!to.memory)
    return refuse(
      `boxes of ${box.name} lie in ${to.name}, whose rows may be apart`,
      `a declared memory in shared memory, a tile of ${box.shape.join(' × ')}`,
    )
  const period = swizzle === 0 ? LINE : (swizzle / CHUNK) * LINE
  for (const m of [to.memory, ...(to.alternatives ?? [])]) {
    if (m.shape.join() !== box.shape.join())
      return refuse(
        `a tile of ${m.name} is ${m.shape.join(' × ')}, and a box of ${box.name} is ${box.shape.join(' × ')}`,
        'one tile for a box',
      )
    if (m.align % period !== 0)
      return refuse(
        `${m.name} is aligned to ${m.align} bytes, and boxes of ${box.name} arrive in patterns of ${period}`,
        `\`aligned ${period}\``,
      )
    const wrong = misplaced(m, swizzle)
    if (wrong) return refuse(...wrong)
  }
  return true
}

/**
 * The message and the expected form for the first element of a tile that is not where a box places it; undefined if all
 * elements are.
 */
function misplaced(m: Memory, swizzle: number): [string, string] | undefined {
  const [rows, columns] = m.shape as [number, number]
  const bytes = DTYPE_BYTES[m.dtype]
  for (let i = 0; i < rows; i++)
    for (let j = 0; j < columns; j++) {
      const place = new Map([
        [coordinateName(0), i],
        [coordinateName(1), j],
      ])
      const is = m.address ? evaluate(m.address, place) * bytes : 0
      const arrives = arrival((i * columns + j) * bytes, swizzle)
      if (is !== arrives)
        return [
          `(${i}, ${j}) of ${m.name} is at byte ${is}, and arrives at byte ${arrives} with a swizzle of ${swizzle}`,
          swizzle === 0
            ? 'rows one after the other'
            : `chunks of ${CHUNK} bytes that change with the line of ${LINE}: bit_xor(chunk, line % ${swizzle / CHUNK})`,
        ]
    }
  return undefined
}
