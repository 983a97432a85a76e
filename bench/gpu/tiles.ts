/** Tiles of matrices whose zeros are found in each run: each holds anything, or nothing. */
import { choose } from './random.ts'

/** Rows and columns of what is all zero or not. */
export type Tile = readonly [rows: number, columns: number]

export const TILES: readonly Tile[] = [
  [32, 1],
  [1, 64],
  [32, 64],
]

/** Single elements: looked for, but not multiplied by themselves. */
export const ELEMENT: Tile = [1, 1]

/** As `--matrices` names it. */
export const tileName = (t: Tile): string => t.join('x')

export const tileText = (t: Tile): string => `tiles of ${t.join(' × ')}`

/** Of `all` those that were named, or all where none was. */
export function tilesAsked(asked: readonly string[], all: readonly Tile[]): readonly Tile[] {
  const named = all.filter((t) => asked.includes(tileName(t)))
  return named.length > 0 ? named : all
}

/** Rows and columns of a matrix that a tile covers, up to the ends. */
export interface Covered {
  readonly top: number
  readonly bottom: number
  readonly left: number
  readonly right: number
}

/** A share of a matrix's tiles, at random, from the first on. */
export function chosenTiles(
  [rows, columns]: readonly [rows: number, columns: number],
  [high, wide]: Tile,
  held: number,
  seed: number,
): readonly Covered[] {
  const across = Math.ceil(columns / wide)
  const all = Math.ceil(rows / high) * across
  return Array.from(choose(Math.round(held * all), all, seed), (t) => {
    const [top, left] = [Math.floor(t / across) * high, (t % across) * wide]
    return { top, bottom: Math.min(rows, top + high), left, right: Math.min(columns, left + wide) }
  })
}

export const elementsOf = ({ top, bottom, left, right }: Covered): number => (bottom - top) * (right - left)
