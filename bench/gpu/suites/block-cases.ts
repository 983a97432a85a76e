/** What suites over matrices of random dense blocks share: the same for programs in Python, and a case of them. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type BlockCase, entryOf, type PythonResult, pythonPeers } from '../../peers/python.ts'
import type { BlockMatrix } from '../blocks.ts'
import type { Case, Entry } from '../case.ts'
import { floor } from '../ceilings.ts'
import { BLOCK_SIZE } from '../named.ts'
import type { Session } from '../session.ts'

/** Rows and columns of the matrices. */
export const SIZE = 4096
export const DENSITIES = [0.05, 0.1, 0.3]
/** Columns of the dense operands, the most first: fewer take the beginning. */
export const WIDTHS = [4096, 512]

/** Sizes of blocks: those of `usual`, or what `--matrices` asks for by name, as `b=8`. */
export function blockSizes(asked: readonly string[], usual: readonly number[]): readonly number[] {
  const named = asked.flatMap((name) => BLOCK_SIZE.exec(name)?.[1] ?? []).map(Number)
  return named.length > 0 ? named : usual
}

/** What a Python program measures, started once for all cases: that takes seconds. `operands` are f16, by file name. */
export const blockPeers = (
  s: Session,
  program: string,
  cells: readonly BlockMatrix[],
  operands: Readonly<Record<string, Uint16Array>>,
): Promise<readonly PythonResult[]> =>
  pythonPeers(program, s, (folder) => {
    for (const [name, values] of Object.entries(operands)) writeFileSync(join(folder, name), values)
    return cells.flatMap(({ name, m }, k): BlockCase[] => {
      const file = join(folder, String(k))
      writeFileSync(`${file}-indptr`, m.indptr)
      writeFileSync(`${file}-indices`, m.indices)
      writeFileSync(`${file}-values`, m.values)
      return WIDTHS.map((width) => ({ id: idOf(name, width), file, size: SIZE, b: m.b, width }))
    })
  })

const idOf = (name: string, width: number): string => `${name} ${width}`

/** A product of a matrix of blocks and `width` columns, or one of which its blocks are kept: f16, with f32 sums. */
export function blockCase(
  s: Session,
  { name, m }: BlockMatrix,
  width: number,
  python: readonly PythonResult[],
  rest: Pick<Case, 'suite' | 'at' | 'checked' | 'standard'> & { readonly entries: readonly Entry[] },
): Case {
  const flops = 2 * m.values.length * width
  const bytes = 2 * (m.values.length + 2 * SIZE * width) + 4 * (m.indices.length + m.indptr.length)
  return {
    ...rest,
    data: name,
    entries: [...rest.entries, ...python.filter((r) => r.id === idOf(name, width)).map(entryOf)],
    floor: s.ceilings ? floor(s.ceilings, { flops, bytes }, 'f16') : null,
    flops,
  }
}
