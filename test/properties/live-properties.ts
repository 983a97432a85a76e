/** What the properties of formats that are found in each run share. */
import fc from 'fast-check'
import { expect } from 'vitest'
import { parseProgram } from '../../src/api/programs/program.ts'
import { reference } from '../../src/reference/index.ts'
import type { Bound } from '../../src/run/bind/index.ts'
import { bindInputs, type Inputs } from '../../src/run/bind/index.ts'
import { referenceInputs } from '../../src/run/bind/results/reference-inputs.ts'
import type { Compilation } from '../../src/run/compile/compile.ts'
import { Choices } from '../support/choices.ts'
import { Skipped } from '../support/compared.ts'
import type { Expected } from './agree.ts'
import { LIVE, type Live, live } from './live-gen.ts'
import { numbers, parameters } from './property-cases.ts'

export const scheduled = ({ text }: { readonly text: string }, name: string): Compilation =>
  parseProgram(text).kernel().schedule(name).compilation

/** Does it, and tells what of where it fails. */
export async function told(what: readonly unknown[], check: () => Promise<void> | void): Promise<void> {
  try {
    await check()
  } catch (e) {
    if (e instanceof Skipped) throw e
    throw new Error(`${e instanceof Error ? e.stack : e}\n${what.join('\n')}`)
  }
}

export const property = (
  usual: number,
  check: (s: Live, c: Choices) => Promise<void> | void,
): Promise<void> =>
  fc.assert(
    fc.asyncProperty(numbers, (n) => {
      const c = new Choices(n)
      const s = live(c)
      return told([s.text, s.sizes], () => check(s, c))
    }),
    parameters(usual),
  )

/** Lists apart, and one loop over all of them. */
export const SCHEDULES = ['live', 'fused'] as const

export const asWritten = (
  c: Compilation,
  inputs: Inputs,
): { readonly bound: Bound; readonly expected: Expected } => {
  const bound = bindInputs(c.kernel, inputs)
  return { bound, expected: reference(c.source, referenceInputs(c.source, bound)).buffers }
}

type Arrays = { get(name: string): ArrayLike<number | bigint> | undefined }

/** How many coordinates are listed of each outer one, as the first chunk knows. */
export const listedIn = (memory: Arrays, lists: number): number[] =>
  Array.from(memory.get('counts_A')!, Number).slice(0, lists)

/** What a run found is what the host makes of the same tensor, list for list; `offsets`: where the lists are one. */
export function sameLists(format: keyof typeof LIVE, memory: Arrays, host: Arrays, offsets = false): void {
  const { list, loops } = LIVE[format]
  const indptr = host.get('go_indptr') ?? host.get(`${list}_indptr`)!
  const coordinates = host.get(list) ?? host.get(`${list}_indices`)!
  // Every chunk knows them.
  const every = Array.from(memory.get('counts_A')!, Number)
  const counts = every.slice(0, indptr.length - 1)
  expect(every).toEqual(every.map((_, k) => counts[k % counts.length]))
  const mine = memory.get(`${list}_of_A`)!
  const width = host.get('go_indptr')
    ? coordinates.length / Math.max(1, Number(indptr[indptr.length - 1]))
    : 1
  const stride = counts.length === 0 ? 0 : mine.length / counts.length
  const groups = Array.from(counts, (n) => (width === 0 ? 0 : Math.ceil(n / width)))
  const ends = [0]
  for (const n of groups) ends.push(ends.at(-1)! + n)
  expect(ends).toEqual(Array.from(indptr, Number))
  const packed = groups.flatMap((n, o) => Array.from(mine).slice(o * stride, o * stride + n * width))
  expect(packed).toEqual(Array.from(coordinates, Number))
  if (offsets) expect(Array.from(memory.get(`${loops.at(-1)}_offsets`)!, Number)).toEqual(ends)
}
