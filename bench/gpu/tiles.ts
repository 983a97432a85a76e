/** Tiles of matrices whose zeros are found in each run: each holds anything, or nothing. */

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
