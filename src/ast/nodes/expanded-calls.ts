/** The calls that a kernel was expanded from, with the names of their members in the kernel. Schedules address members by them. */
import type { Problem } from '../diagnostics/diagnostic.ts'
import type { Span } from '../diagnostics/span.ts'

type Names = ReadonlyMap<string, string>

export interface ExpandedCall {
  /** The label without the numbers of copies: `layer` of `layer[3]`. */
  readonly label: string
  /** The numbers of the copies around the call, the outermost first. */
  readonly copies: readonly number[]
  /** The begin of the names of its members. */
  readonly prefix: string
  /** The called kernel, and the place of its declaration. */
  readonly callee: { readonly name: string; readonly span: Span }
  readonly span: Span
  /** The kernel's names of the callee's iterations, axes, buffers, and renamed iterators. */
  readonly iterations: Names
  readonly axes: Names
  readonly buffers: Names
  readonly iterators: Names
  /** The callee's sizes: a size of the kernel, a number, or null for another expression. */
  readonly sizes: ReadonlyMap<string, string | number | null>
  /** The calls in the callee. */
  readonly calls: readonly ExpandedCall[]
}

/** The name of a call in schedules: `layer[3]`. */
export const callText = ({ label, copies }: Pick<ExpandedCall, 'label' | 'copies'>): string =>
  `${label}${copies.map((k) => `[${k}]`).join('')}`

const renamed = (names: Names, outer: Names): Names =>
  new Map([...names].map(([own, name]) => [own, outer.get(name) ?? name]))

/** A call of a callee, as a call of the kernel that calls it. */
export function callInCall(call: ExpandedCall, outer: ExpandedCall): ExpandedCall {
  const sizeIn = (value: string | number | null) =>
    typeof value === 'string' ? (outer.sizes.get(value) ?? null) : value
  return {
    ...call,
    prefix: `${outer.prefix}_${call.prefix}`,
    iterations: renamed(call.iterations, outer.iterations),
    axes: renamed(call.axes, outer.axes),
    buffers: renamed(call.buffers, outer.buffers),
    iterators: new Map([...outer.iterators, ...renamed(call.iterators, outer.iterators)]),
    sizes: new Map([...call.sizes].map(([own, value]) => [own, sizeIn(value)])),
    calls: call.calls.map((c) => callInCall(c, outer)),
  }
}

/** The name of a call in schedules. */
const CALL = /^[^[\]]+(?:\[(?:0|-?[1-9]\d*)\])*$/

/**
 * The calls of a name in schedules, such as `encoder[3].inner`: without numbers, those in all copies. Returns the problem
 * of an unknown name.
 */
export function callsNamed(name: string, calls: readonly ExpandedCall[]): readonly ExpandedCall[] | Problem {
  let [found, among] = [calls, calls]
  for (const part of name.split('.')) {
    if (!CALL.test(part))
      return {
        message: `${part} is not the name of a call`,
        expected: 'a label with whole numbers in brackets: layer[2][1]',
      }
    const [label = '', ...numbers] = part.split('[')
    const labelled = among.filter((c) => c.label === label)
    found = labelled.filter((c) => numbers.every((n, k) => c.copies[k] === Number.parseInt(n, 10)))
    const labels = labelled.slice(0, 1).map(({ span }) => ({ span, text: `${label} is called here` }))
    if (labelled.length === 0)
      return {
        message: `there is no call ${label}`,
        lookup: { name: label, candidates: [...new Set(among.map((c) => c.label))] },
      }
    if (found.length === 0) {
      const isBelowOne = numbers.some((n) => Number.parseInt(n, 10) < 1)
      const hint = `write \`${callText(labelled[0]!)}\` for the first repetition: repetitions are numbered from 1`
      return {
        message: `there is no call ${part}`,
        labels,
        expected: rangeOf(labelled),
        ...(isBelowOne && { hint }),
      }
    }
    among = found.flatMap((c) => c.calls)
  }
  return found
}

/** `layer[1] to layer[12]` */
export const rangeOf = (calls: readonly ExpandedCall[]): string =>
  [...new Set([calls[0]!, calls.at(-1)!].map(callText))].join(' to ')
