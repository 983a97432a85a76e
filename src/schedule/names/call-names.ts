/** Names of members of called kernels: `encoder[3].score.i` in schedules of the caller, and names in schedules of callees. */
import { failAt, type Span } from '../../ast/diagnostics/diagnostic.ts'
import { isRecord } from '../../ast/diagnostics/expect-argument.ts'
import { callsNamed, callText, type ExpandedCall, rangeOf } from '../../ast/nodes/expanded-calls.ts'
import { mayNameAxisArray } from '../../ir/coordinates/derived-names.ts'
import { iterationsOf } from '../../ir/coordinates/stage1-tree.ts'
import { loopsOf } from '../../ir/statements/definitions.ts'
import { type Names, type Program, plainNames } from './part-names.ts'

/** The program that steps are applied to. */
export interface Now extends Program {
  /** True if a step on loops was applied. */
  readonly onLoops: boolean
}

/**
 * The longest of the names in a name: formats derive names from those of axes, tensors and iterations, such as `j_indptr`,
 * `A_band`, `mark_A`.
 */
function nameIn(name: string, names: readonly string[]): string | undefined {
  const found = names.filter((own) => name === own || `_${name}_`.includes(`_${own}_`))
  return found.sort((a, b) => b.length - a.length)[0]
}

/** The loop nests, or those with a loop of a name. `isNow`: after the steps on loops. */
function nestsOf(now: Now, loop?: string, isNow = now.onLoops): readonly string[] {
  const { kernel } = now
  const has = ({ name }: { readonly name: string }): boolean => loop === undefined || name === loop
  const all = isNow
    ? loopsOf(now.loops.body).flatMap((l) => (has(l) ? l.nest : []))
    : iterationsOf(kernel.body).flatMap((it) => (it.iters.some(has) ? it.name : []))
  return [...new Set(all)]
}

/** The names of loop nests that steps make of several whose names have no common prefix. In the call, they have the call's. */
const WITHOUT_PREFIX = /^(?:joined|merged)(?=_\d+$|$)/

/**
 * The names of a callee's schedule in the kernel that calls it. New buffers begin with the name of the call.
 *
 * @param now returns the program before the step
 */
export function callNames(call: ExpandedCall, now: () => Now): Names {
  const made = new Set<string>()
  const own = [...call.iterations.values(), ...call.buffers.values()]
  const isOwn = (nest: string): boolean => made.has(nest) || nameIn(nest, own) !== undefined
  /** The loop nests of the call with a loop: those that no step made, otherwise any, otherwise those in which steps replaced it. */
  const nestsWith = (loop: string): readonly string[] => {
    const nests = nestsOf(now(), loop).filter(isOwn)
    const originals = nests.filter((nest) => !made.has(nest))
    if (nests.length > 0) return originals.length > 0 ? originals : nests
    return nestsOf(now(), loop, false).filter(isOwn)
  }
  const qualified = (name: string): string => {
    const [nest, ...others] = nestsWith(name)
    return nest !== undefined && others.length === 0 ? `${nest}.${name}` : name
  }
  /** Formats name loops after axes, too. */
  const ofAxis = (loop: string): string => {
    const axis = nameIn(loop, [...call.axes.keys()])
    return axis === undefined ? loop : loop.replace(axis, call.axes.get(axis)!)
  }
  /** A loop by its name alone. */
  const ownLoop = (given: string, span: Span): string => {
    const name = nestsWith(given).length > 0 ? given : ofAxis(given)
    const nests = nestsWith(name)
    const where = {
      labels: [{ span: call.span, text: 'called here' }],
      hint: 'write the loop nest in front: NEST.LOOP',
    }
    if (nests.length > 1)
      failAt('schedule/ambiguous-loop', span, {
        message: `${nests.length} loop nests of the call ${callText(call)} have a loop ${name}`,
        expected: nests.map((nest) => `${nest}.${name}`).join(', '),
        ...where,
      })
    if (nests.length === 0 && nestsOf(now(), name).length > 0)
      failAt('schedule/unknown-loop', span, {
        message: `no loop nest of the call ${callText(call)} has a loop ${name}`,
        ...where,
      })
    return qualified(name)
  }
  const inNest = (nest: string, loop: string): string =>
    `${nest}.${[true, false].some((isNow) => nestsOf(now(), loop, isNow).includes(nest)) ? loop : ofAxis(loop)}`
  const iterator = (name: string): string => call.iterators.get(name) ?? name
  const member = (name: string, names: ReadonlyMap<string, string>, isKnown: () => boolean): string => {
    const prefixed = `${call.prefix}_${name}`
    if (made.has(prefixed)) return prefixed
    if (name.includes('.')) return memberName(name, now(), undefined, call.calls)
    const base = nameIn(name, [...names.keys()])
    if (base !== undefined) return name.replace(base, names.get(base)!)
    return isKnown() ? name : prefixed
  }
  const names: Names = {
    ...plainNames,
    nest({ name }) {
      const nests = nestsOf(now())
      const common = name.replace(WITHOUT_PREFIX, call.prefix)
      if (common !== name && nests.includes(common)) return common
      const own = member(name, new Map([...call.buffers, ...call.iterations]), () => nests.includes(name))
      // Copies of the arrays of axes have names of the kernel's axes.
      return nests.includes(own) || !nests.includes(ofAxis(name)) ? own : ofAxis(name)
    },
    buffer: ({ name }) =>
      member(name, new Map([...call.axes, ...call.buffers]), () => mayNameAxisArray(name)),
    loop: ({ nest, name }) =>
      nest ? inNest(names.nest(nest), iterator(name.name)) : ownLoop(iterator(name.name), name.span),
    loops: (r) => [names.loop(r)],
    fresh({ name }, of) {
      if (of === 'new loop') return name
      made.add(`${call.prefix}_${name}`)
      return `${call.prefix}_${name}`
    },
    qualified,
    size({ name, span }) {
      const size = call.sizes.get(name)
      return typeof size === 'string'
        ? size
        : failAt('schedule/callee', span, {
            message: `${name} is ${size ?? 'an expression'} in the call ${callText(call)}`,
            labels: [{ span: call.span, text: 'called here' }],
            expected: 'a size of the kernel that calls',
          })
    },
  }
  return names
}

/**
 * The name of a member in the kernel: `encoder_3_score.i` for `encoder[3].score.i`. Other names stay as they are.
 *
 * @throws SptError `schedule/unknown-call`
 */
export function memberName(
  text: string,
  now: Now,
  span?: Span,
  calls: readonly ExpandedCall[] = now.kernel.calls ?? [],
): string {
  if (!text.includes('[') && (calls.length === 0 || !text.includes('.'))) return text
  const parts = text.split('.')
  let [call, among]: [ExpandedCall | undefined, readonly ExpandedCall[]] = [undefined, calls]
  const isIteration = (name: string): boolean =>
    iterationsOf(now.kernel.body).some((it) => it.name === name) || nestsOf(now).includes(name)
  while (parts.length > 1) {
    const [part = ''] = parts
    const isCall = part.includes('[') || among.some((c) => c.label === part)
    if (!isCall && parts.length < 3) break
    if (!isCall && call === undefined) return text
    if (call === undefined && isIteration(part)) return text
    const found = callsNamed(part, among)
    if (!('length' in found)) return failAt('schedule/unknown-call', span, found)
    if (found.length > 1)
      failAt('schedule/unknown-call', span, {
        message: `${part} is the name of ${found.length} calls`,
        labels: [{ span: found[0]!.span, text: 'called here' }],
        expected: `one call: ${rangeOf(found)}`,
      })
    call = found[0]!
    among = call.calls
    parts.shift()
  }
  if (!call) return text
  const ident = (name: string) => ({ name, span: span ?? call.span })
  const names = callNames(call, () => now)
  const [first = '', second] = parts
  if (second !== undefined)
    return names.loop({ nest: ident(first), name: ident(second), span: span ?? call.span })
  const known = call.iterations.get(first) ?? call.buffers.get(first)
  if (known !== undefined) return known
  const loop = names.loop({ nest: null, name: ident(first), span: span ?? call.span })
  return loop.includes('.') ? loop : `${call.prefix}_${first}`
}

/** A step with the kernel's names in place of those of members of calls. @throws SptError `schedule/unknown-call` */
export function stepInCalls<S extends { readonly span?: Span | undefined }>(step: S, now: Now): S {
  const value = (x: unknown): unknown => {
    if (typeof x === 'string') return memberName(x, now, step.span)
    if (Array.isArray(x)) return x.map(value)
    return isRecord(x) && typeof x.loop === 'string' ? { ...x, loop: value(x.loop) } : x
  }
  const isPath = (x: unknown): boolean => Array.isArray(x) || (typeof x === 'string' && x.includes('.'))
  // Untyped callers may pass values that are not steps; the checks of steps reject them.
  if (!isRecord(step) || !Object.values(step).some(isPath)) return step
  return Object.fromEntries(Object.entries(step).map(([key, x]) => [key, value(x)])) as S
}
