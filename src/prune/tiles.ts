/** Tiles of masks: groups of `granularity` consecutive non-empty outputs that keep the same inputs. */
import { failWith, resultOrError, SptError } from '../ast/diagnostics/diagnostic.ts'
import { checkMask } from './layers.ts'
import { checkGranularity } from './patterns/parameters.ts'
import type { Mask, Tile } from './types.ts'

const NOT_TILE_WISE = 'prune/not-tile-wise'

/** Positions of nonzeros in part of an array. */
export function nonzeroIndices(flags: ArrayLike<number>, from: number, length: number): Int32Array {
  let n = 0
  for (let i = 0; i < length; i++) if (flags[from + i] !== 0) n++
  const out = new Int32Array(n)
  n = 0
  for (let i = 0; i < length; i++) if (flags[from + i] !== 0) out[n++] = i
  return out
}

/** Rows with kept elements. */
export function keptRows(mask: Mask, rows: number, cols: number): Int32Array {
  const kept = new Uint8Array(rows)
  for (let r = 0; r < rows; r++)
    for (let i = r * cols; i < (r + 1) * cols && kept[r] === 0; i++) if (mask[i] !== 0) kept[r] = 1
  return nonzeroIndices(kept, 0, rows)
}

/** Splits a list into chunks of `granularity`. */
export const chunk = (outputs: Int32Array, granularity: number): Int32Array[] =>
  Array.from({ length: Math.ceil(outputs.length / granularity) }, (_, k) =>
    outputs.slice(k * granularity, (k + 1) * granularity),
  )

/**
 * The tiles of a tile-wise mask. `name`: name of the layer in the error.
 * @throws SptError `prune/not-tile-wise` if outputs of a tile keep different inputs
 */
export function extractTiles(
  mask: Mask,
  rows: number,
  cols: number,
  granularity: number,
  name?: string,
): readonly Tile[] {
  checkGranularity(granularity)
  checkMask(mask, { name: name ?? 'given', rows, cols })
  return chunk(keptRows(mask, rows, cols), granularity).map((outputs, k) => {
    const first = outputs[0]!
    for (const r of outputs)
      for (let c = 0; c < cols; c++)
        if ((mask[r * cols + c] === 0) !== (mask[first * cols + c] === 0)) {
          const [keeps, prunes] = mask[r * cols + c] === 0 ? [first, r] : [r, first]
          failWith(
            NOT_TILE_WISE,
            `${name === undefined ? '' : `layer ${name}: `}tile ${k} of ${outputs.length} outputs is not a product: row ${r}, column ${c} differs from row ${first}`,
            {
              expected: `the same inputs for rows ${first} to ${outputs.at(-1)} that keep something; row ${keeps} keeps column ${c}, row ${prunes} does not`,
              hint: 'another granularity, or a pattern with single elements outside the tiles',
            },
          )
        }
    return { outputs, inputs: nonzeroIndices(mask, first * cols, cols) }
  })
}

/** True if the mask is tile-wise. @throws SptError of invalid masks and granularities, as `extractTiles` */
export function isTileWise(mask: Mask, rows: number, cols: number, granularity: number): boolean {
  const result = resultOrError(() => extractTiles(mask, rows, cols, granularity))
  if (!(result instanceof SptError)) return true
  if (result.code !== NOT_TILE_WISE) throw result
  return false
}

/** The mask of the elements of tiles. */
export function maskOf(tiles: readonly Tile[], rows: number, cols: number): Mask {
  const mask = new Uint8Array(rows * cols)
  for (const { outputs, inputs } of tiles)
    for (const r of outputs) for (let k = 0; k < inputs.length; k++) mask[r * cols + inputs[k]!] = 1
  return mask
}
