/** What `--matrices` names: matrices, sizes of blocks or layers, or groups, each for the suites that have such data. */
import { fail } from '../../src/ast/diagnostic.ts'
import type { GroupKind } from '../families/groups.ts'
import { groupKind } from './groups.ts'
import { sources } from './matrix.ts'

export type DataKind = 'matrices' | 'blocks' | 'layers' | GroupKind

/** `b=16` */
export const BLOCK_SIZE = /^b=(\d+)$/
/** `3072x768`, outputs and inputs, or with columns of activations: `3072x768x12800` */
export const LAYER_SIZE = /^([1-9]\d{0,5})x([1-9]\d{0,5})(?:x([1-9]\d{0,6}))?$/

const kindOf = (name: string): DataKind =>
  BLOCK_SIZE.test(name) ? 'blocks' : LAYER_SIZE.test(name) ? 'layers' : (groupKind(name) ?? 'matrices')

/** Of what was asked for, the names that can be matrices. */
export const matricesOf = (asked: readonly string[]): readonly string[] =>
  asked.filter((name) => kindOf(name) === 'matrices')

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
  takes: Readonly<Record<string, DataKind | undefined>>,
): void {
  const matrices = matricesOf(asked)
  if (matrices.length > 0) sources(folder, matrices, quick)
  for (const name of asked) {
    const kind = kindOf(name)
    if (suites.some((suite) => takes[suite] === kind)) continue
    fail({
      code: 'bench/no-matrix',
      message: `no suite of ${suites.join(', ')} takes ${name}`,
      expected: `suites of it: ${Object.keys(takes)
        .filter((suite) => takes[suite] === kind)
        .join(', ')}`,
    })
  }
}
