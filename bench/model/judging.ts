/** Choices on what was measured: by models that have not seen the family, of all that was measured, and of lists. */
import { flatInputs } from '../../src/api/inputs/flat-inputs.ts'
import type { Kernel } from '../../src/node.ts'
import { useCostModel } from '../../src/search.ts'
import { kernelOf, parseCandidate, programOf } from '../gpu/candidates.ts'
import { together } from '../support.ts'
import { caseOf, isLibrary, isStandard, matrixOf, operandOf, type Sample, sizesOf } from './dataset.ts'
import { expectedBy, groupOf, leavingOut, timeOf } from './learning.ts'
import type { Measured } from './records.ts'
import type { Guess } from './verdict.ts'

/** One case, and what a model that has not seen its family says of what was measured of it. */
export interface Judged {
  readonly name: string
  readonly suite: string
  readonly width: number
  readonly data: string
  readonly group: string
  readonly guesses: readonly Guess[]
  /** Milliseconds of what ran unasked, where that was measured. */
  readonly standard: number | null
  /** What a user gets who chooses nothing, with that model; `null` where it was not measured. */
  readonly chosen: { readonly candidate: string; readonly time: number } | null
  readonly best: number
}

/** Cases with fewer kernels say little. */
const LEAST = 5

/** Kernels that are the same by their steps, whatever arguments are left out. */
const stepsOf = (kernel: Kernel): string => JSON.stringify(kernel.toJSON())

/**
 * @param points - Of sketches: models learn from them, but are not judged on them
 * @param kernels - Folder of the `.spt` files whose choices are judged
 * @param folder - Of the real matrices
 */
export async function* judgedCases(
  records: readonly Measured[],
  samples: readonly Sample[],
  points: readonly Sample[],
  kernels: string | null,
  folder: string,
): AsyncGenerator<Judged> {
  const device = records[0]!.device
  const named = new Map<string, string>()
  for (const candidate of new Set(samples.map((s) => s.candidate)))
    named.set(candidate, stepsOf((await kernelOf(parseCandidate(candidate))).kernel))
  for (const { group, model } of leavingOut(samples, points)) {
    useCostModel(device, model)
    const own = samples.filter((s) => groupOf(s) === group)
    for (const data of new Set(own.map((s) => s.data))) {
      const A = kernels === null ? null : await matrixOf(folder, data)
      const cases = together(
        own.filter((s) => s.data === data),
        caseOf,
      )
      for (const [name, list] of cases) {
        if (list.length < LEAST) continue
        const all = records.filter((r) => caseOf(r) === name && !isLibrary(r))
        const standard = all.find(isStandard)
        const guesses = list.map((s) => ({
          candidate: s.candidate,
          time: timeOf(s),
          expected: expectedBy(model, s),
        }))
        const first = list[0]!
        let chosen: Judged['chosen'] = null
        if (A) {
          const { program } = await programOf(parseCandidate(`${kernels}/${first.suite}.spt`))
          const kernel = program.kernel(first.suite)
          const inputs = { tensors: operandOf(kernel, A), params: sizesOf(first, A) }
          const variant = await kernel.choose(device, ...flatInputs(inputs))
          const steps = stepsOf(variant.kernel)
          chosen = guesses.find((g) => named.get(g.candidate) === steps) ?? null
        }
        yield {
          name,
          suite: first.suite,
          width: first.width,
          data,
          group,
          guesses,
          standard: standard ? timeOf(standard) : null,
          chosen,
          best: Math.min(...all.map(timeOf)),
        }
      }
    }
  }
  useCostModel(device, undefined)
}
