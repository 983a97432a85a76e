/** What `--matrices` names: matrices, sizes of blocks, layers or tiles, or groups, each for the suites that have such data. */
import { fail } from '../../src/ast/diagnostics/diagnostic.ts'
import type { GroupKind } from '../families/groups.ts'
import { groupKind } from './groups.ts'
import { sources } from './matrix.ts'
import { ELEMENT, TILES, tileName } from './tiles.ts'

export type DataKind = 'matrices' | 'blocks' | 'layers' | 'shapes' | 'tiles' | 'elements' | GroupKind

/** `b=16` */
export const BLOCK_SIZE = /^b=(\d+)$/
/** `3072x768`, outputs and inputs, or with columns of activations: `3072x768x12800` */
export const LAYER_SIZE = /^([1-9]\d{0,5})x([1-9]\d{0,5})(?:x([1-9]\d{0,6}))?$/

/** Extents of a dense product C[m, n] = A[m, k] B[k, n]. */
export type Shape = readonly [m: number, n: number, k: number]

/** The shapes that were named, as `1000x3000x5000` (m, n, k), or `usual`. */
export function shapesAsked(asked: readonly string[], usual: readonly Shape[]): readonly Shape[] {
  const named = asked.flatMap((name): Shape[] => {
    const [, m, n, k] = LAYER_SIZE.exec(name) ?? []
    return k === undefined ? [] : [[Number(m), Number(n), Number(k)]]
  })
  return named.length > 0 ? named : usual
}

/** Some sizes are of layers, of products and of tiles. */
function kindsOf(name: string, folder: string): readonly DataKind[] {
  if (BLOCK_SIZE.test(name)) return ['blocks']
  if (!LAYER_SIZE.test(name)) return [groupKind(name, folder) ?? 'matrices']
  if (TILES.some((t) => tileName(t) === name)) return ['tiles', 'layers']
  if (tileName(ELEMENT) === name) return ['elements', 'layers']
  return LAYER_SIZE.exec(name)?.[3] === undefined ? ['layers'] : ['layers', 'shapes']
}

/** Of what was asked for, the names that can be matrices. */
export const matricesOf = (asked: readonly string[], folder: string): readonly string[] =>
  asked.filter((name) => kindsOf(name, folder).includes('matrices'))

/**
 * Whether there is what was asked for, and a suite that takes it; `takes` says what data suites have, `suites` which of them
 * will run.
 * @throws SptError `bench/no-matrix`
 */
export function checkData(
  asked: readonly string[],
  folder: string,
  quick: boolean,
  suites: readonly string[],
  takes: Readonly<Record<string, readonly DataKind[]>>,
): void {
  const matrices = matricesOf(asked, folder)
  if (matrices.length > 0) sources(folder, matrices, quick)
  for (const name of asked) {
    const kinds = kindsOf(name, folder)
    const has = (suite: string): boolean => takes[suite]?.some((kind) => kinds.includes(kind)) ?? false
    if (suites.some(has)) continue
    fail({
      code: 'bench/no-matrix',
      message: `no suite of ${suites.join(', ')} takes ${name}`,
      expected: `suites of it: ${Object.keys(takes).filter(has).join(', ')}`,
    })
  }
}
