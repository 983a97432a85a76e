/** Pictures and tables of the storage of converted tensors. */
import { ConvertedTensor } from '../api/inputs/converted-tensor.ts'
import { expectArgument } from '../ast/diagnostics/expect-argument.ts'
import { drawParts } from '../pictures/picture/index.ts'
import type { CellOutput } from './display.ts'
import { type Figure, picture } from './figure.ts'
import { table } from './table.ts'

/**
 * A picture of the tensor with its parts and the storage of each.
 * @param name of the tensor in the picture
 */
export const storage = (tensor: ConvertedTensor, name = 'tensor'): Figure =>
  picture(drawParts(expectConverted(tensor).stored, { name }), `${name} as ${tensor.format}`)

/**
 * Compares storage formats of a tensor, one row each: parts, slots of the value arrays and their share of padding, bytes of
 * index arrays (permutations and lists included) and of values, and total bytes relative to CSR.
 */
export const comparison = (tensors: readonly ConvertedTensor[]): CellOutput =>
  table(
    tensors.map((tensor) => {
      const report = expectConverted(tensor).describe()
      return {
        format: report.format,
        parts: report.parts.length,
        slots: report.slots,
        'padding %': 100 * report.paddingShare,
        'index bytes': report.structureBytes + report.tableBytes,
        'value bytes': report.valueBytes,
        'bytes / compressed rows': report.bytes / report.compressedBytes,
      }
    }),
  )

/** The parts of a tensor: number of distinct rows and of elements, slots, padding and bytes. */
export const parts = (tensor: ConvertedTensor): CellOutput =>
  table(
    expectConverted(tensor)
      .describe()
      .parts.map((p) => ({
        part: p.label === '' ? '(all)' : p.label,
        format: p.format,
        rows: p.rows,
        elements: p.stored,
        slots: p.slots,
        'padding %': 100 * p.paddingShare,
        bytes: p.bytes,
      })),
  )

function expectConverted(tensor: ConvertedTensor): ConvertedTensor {
  expectArgument(
    tensor instanceof ConvertedTensor,
    'the tensor',
    tensor,
    'a tensor in a format: program.format(text).convert(tensor)',
  )
  return tensor
}
