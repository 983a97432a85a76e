/** Schedule steps as methods: each returns a new kernel, or throws with the reason. */
import { failAs, failWith, resultOrError, SptError, withSources } from '../../ast/diagnostics/diagnostic.ts'
import { expectOptions } from '../../ast/diagnostics/expect-argument.ts'
import { parseExpression } from '../../ast/parse/parse.ts'

import { throwErrors } from '../../elaborate/diagnostics.ts'
import { argumentOver, parameters } from '../../elaborate/schedules/schedule-params.ts'
import type { Kernel1 } from '../../ir/coordinates/stage1.ts'
import { type Expr, int } from '../../ir/expressions/expr.ts'
import type { AnyFormat } from '../../ir/formats/format.ts'
import type { Instr } from '../../ir/instructions/instr.ts'
import type { CoordStep } from '../../schedule/coordinates/steps.ts'
import { COORD_STEPS } from '../../schedule/coordinates/steps.ts'
import { isHandle, type LoopHandle, type LoopRef } from '../../schedule/names/kernel-names.ts'
import type { Declared } from '../../schedule/primitive.ts'
import { LOOP_STEPS } from '../../schedule/primitives.ts'
import type { MemoryScope } from '../../schedule/steps/arguments.ts'
import { overSizes } from '../../schedule/steps/step-arguments.ts'
import type { LoopStep } from '../../schedule/steps/step-data.ts'
import { expectArgument, isRecord } from '../inputs/argument-checks.ts'
import { ErrorSources } from '../programs/error-sources.ts'
import { chooseFormat } from '../programs/format-lookup.ts'
import { instrOf, placeOf, type Surroundings } from './instruction-lookup.ts'

/** Camel-case name of a step: `cacheRead` for `cache_read`. */
type MethodName<Word> = Word extends `${infer First}_${infer Rest}`
  ? `${First}${Capitalize<MethodName<Rest>>}`
  : Word

/** A method for each primitive of a list, with its declared parameters. */
type Methods<L extends Readonly<Record<string, Declared<unknown, never>>>, K> = {
  readonly [W in keyof L as MethodName<W>]: (...args: Parameters<L[W]['given']>) => K
}

type Capacity = number | string | Expr

export interface Steps<K>
  extends Methods<typeof LOOP_STEPS, K>,
    Methods<Pick<typeof COORD_STEPS, 'attach' | 'mask' | 'drop'>, K> {}

/** `K`: the type of the kernel that a step returns. */
// biome-ignore lint/suspicious/noUnsafeDeclarationMerging: the methods are put on the prototype below
export abstract class Steps<K> extends ErrorSources {
  protected abstract get surroundings(): Surroundings
  /** Stage I of the unscheduled kernel. */
  abstract get source(): Kernel1
  /** True if steps on coordinates may still be applied. */
  protected abstract get onCoordinates(): boolean
  /** The current loop of a handle, or its name as an iterator, because iterators have no handles. */
  protected abstract current(handle: LoopHandle, asIterator: boolean): LoopRef
  protected abstract onCoord(step: CoordStep): K
  protected abstract onLoop(step: LoopStep): K

  /**
   * Stores `buffer` (and tensors with the same structure) in a format: by name (`as('A', 'blocks', 16)`), as written in a schedule
   * (`as('A', 'blocks(16) where (density(16) >= 0.5) + rows')`), or as a format of another program. Arguments are numbers, and names of
   * bound lists and sets.
   * @throws SptError `api/unknown-format`, `parse/…`, `check/…`
   */
  as(buffer: string, format: string | AnyFormat, ...args: readonly (number | string)[]): K {
    const { call } = COORD_STEPS.as
    const chosen = showingCall(call, () => chooseFormat(format, args, this.surroundings.formats))
    return this.onCoord({ kind: 'as', buffer, ...chosen })
  }

  /**
   * Builds the format at run time, from the elements of the dense tensor `buffer` that differ from its fill value. `buffer` is an input,
   * or written by earlier iterations. Its values are not copied (`A as FORMAT live in place`), unless `{ inPlace: false }` is set (`A as
   * FORMAT live`).
   * Arguments as in `as`, followed by options. `capacity`: maximum number of positions per list, a number or an expression over sizes (`'n
   * / 2'`); a list of these for several parts. `total`: maximum number in all lists, which are then stored contiguously. `for`: further
   * iterations that use the same lists, as far as `mask` permits.
   * @throws SptError `schedule/live-tensor`, `schedule/live-format`, `schedule/live-capacity`, and as `as` and `mask` do
   */
  live(
    buffer: string,
    format: string | AnyFormat,
    ...args: readonly (
      | number
      | string
      | {
          readonly capacity?: Capacity | readonly Capacity[]
          readonly total?: Capacity | readonly Capacity[]
          readonly for?: readonly string[]
          readonly inPlace?: boolean
        }
    )[]
  ): K {
    const last = args.at(-1)
    const isGiven = typeof last === 'object' && last !== null
    const options = isGiven ? last : {}
    expectOptions('live', options, ['capacity', 'total', 'for', 'inPlace'])
    const { inPlace = true, for: carried, ...capacities } = options
    expectArgument(typeof inPlace === 'boolean', 'inPlace of live', inPlace, 'true or false')
    const given = Object.entries(capacities).flatMap(([name, x]) =>
      x === undefined
        ? []
        : [
            [
              name,
              Array.isArray(x) ? x.map((e) => this.#capacity(name, e)) : this.#capacity(name, x),
            ] as const,
          ],
    )
    const numbers = (isGiven ? args.slice(0, -1) : args) as readonly (number | string)[]
    const chosen = chooseFormat(format, numbers, this.surroundings.formats)
    return this.onCoord({
      kind: 'as',
      buffer,
      ...chosen,
      live: inPlace ? 'live in place' : 'live',
      ...Object.fromEntries(given),
      ...(carried !== undefined && { for: carried }),
    })
  }

  #capacity<T>(name: string, x: T): T | Expr {
    const fits = typeof x !== 'number' || (Number.isInteger(x) && x >= 0 && x < 2 ** 31)
    const expected = 'an integer from 0 to 2147483647, or an expression over sizes as a text'
    expectArgument(fits, `${name} of live`, x, expected)
    if (typeof x === 'number') return int(x)
    return typeof x === 'string' ? parseSizes(x, this.source) : x
  }

  static {
    for (const word of new Set([...Object.keys(COORD_STEPS), ...Object.keys(LOOP_STEPS)])) {
      const name = word.replace(/_(.)/g, (_, letter: string) => letter.toUpperCase())
      if (Object.hasOwn(Steps.prototype, name)) continue
      const [coords, loops] = [find(COORD_STEPS, word), find(LOOP_STEPS, word)]
      const { length } = (loops ?? coords!).given
      const method = function (this: Steps<unknown>, ...args: unknown[]): unknown {
        const calls = showingCall((loops ?? coords!).call, () => callsOf(args))
        if (calls) return calls.reduce<Steps<unknown>>((k, own) => method.call(k, ...own) as typeof k, this)
        // Acts on coordinates while that is possible.
        const onCoords = coords !== undefined && !(loops && !this.onCoordinates)
        const primitive = onCoords ? coords : loops!
        const loop = (h: LoopHandle): LoopRef => this.current(h, onCoords)
        const step = showingCall(primitive.call, () => {
          expectNoMore(name, length, args)
          const given = primitive.given(...args.map((a) => withLoops(a, loop)))
          return { kind: word, ...fieldsOf(given, this.surroundings) }
        })
        return onCoords ? this.onCoord(step as CoordStep) : this.onLoop(step as LoopStep)
      }
      Object.defineProperty(method, 'name', { value: name })
      Object.defineProperty(Steps.prototype, name, { value: method, writable: true, configurable: true })
      if (word === name) continue
      const value = misspelt(word, name, loops ?? coords!)
      Object.defineProperty(Steps.prototype, word, { value, writable: true, configurable: true })
    }
  }
}

/**
 * Returns a method that throws `api/step-name`. It replaces a method with the `.spt` name of the step, which JavaScript would report as
 * "not a function".
 */
function misspelt(word: string, name: string, { call }: AnyDeclared): () => never {
  return () =>
    failWith('api/step-name', `in TypeScript the step ${word} is called ${name}`, {
      hint: `write \`${call}\``,
    })
}

/** Runs `work`; errors about arguments show an example call. */
function showingCall<T>(call: string, work: () => T): T {
  const done = resultOrError(work)
  if (!(done instanceof SptError)) return done
  const { diagnostics, sources } = done
  const shown = new SptError(diagnostics.map((d) => ({ ...d, hint: d.hint ?? `write \`${call}\`` })))
  shown.sources = sources
  throw shown
}

function withLoops(given: unknown, loop: (h: LoopHandle) => LoopRef): unknown {
  if (Array.isArray(given)) return given.map((g) => withLoops(g, loop))
  if (isHandle(given)) return loop(given)
  const options = isRecord(given) && Object.values(given).some(isHandle)
  return options ? Object.fromEntries(Object.entries(given).map(([k, g]) => [k, withLoops(g, loop)])) : given
}

type AnyDeclared = Declared<unknown, readonly unknown[]>
function find(list: object, word: string): AnyDeclared | undefined {
  return Object.hasOwn(list, word) ? (list as Readonly<Record<string, AnyDeclared>>)[word] : undefined
}

/** Rejects surplus arguments, which JavaScript would drop. Variadic methods have a length of 0. */
function expectNoMore(word: string, parameters: number, args: readonly unknown[]): void {
  expectArgument(
    parameters === 0 || args.length <= parameters,
    `argument ${parameters + 1} of ${word}`,
    args[parameters],
    parameters === 1 ? 'one argument' : `at most ${parameters} arguments`,
  )
}

/** Converts arguments to fields of a step: resolves declared memories and instructions, and omits undefined fields. */
const fieldsOf = (given: object, surroundings: Surroundings): object =>
  Object.fromEntries(
    Object.entries(given).flatMap(([field, value]): [string, unknown][] => {
      if (field === 'place') return Object.entries(placeOf(value as MemoryScope, surroundings))
      if (field === 'instr') return [[field, instrOf(value as string | Instr, surroundings)]]
      return value === undefined ? [] : [[field, value]]
    }),
  )

// Groups of loops or names in the arguments of a step: `'(score, allow).i'`, `'(score.i, allow.k)'`, `'(S,
// T)'`. The step applies to each member, in order, as the same group does in `.spt`.

/** Returns the members of a group; null for another text. */
function membersOf(text: string): readonly string[] | null {
  const group = /^\(([\w.[\]\s]+(?:,[\w.[\]\s]+)+)\)(?:\.(\w+))?$/.exec(text.trim())
  const suffix = group?.[2] === undefined ? '' : `.${group[2]}`
  return group?.[1]?.split(',').map((member) => `${member.trim()}${suffix}`) ?? null
}

/** Replaces each group in an argument by the value of `choose`. */
function withMembers(given: unknown, choose: (members: readonly string[]) => string): unknown {
  if (typeof given === 'string') {
    const members = membersOf(given)
    return members ? choose(members) : given
  }
  if (Array.isArray(given)) return given.map((g) => withMembers(g, choose))
  if (!isRecord(given) || Object.getPrototypeOf(given) !== Object.prototype) return given
  return Object.fromEntries(
    Object.entries(given).map(([key, g]) => [withMembers(key, choose) as string, withMembers(g, choose)]),
  )
}

/**
 * Returns the arguments of each step that a call stands for; null for a call without groups. @throws SptError
 * `api/argument` for groups of different lengths
 */
function callsOf(args: readonly unknown[]): readonly (readonly unknown[])[] | null {
  const groups: (readonly string[])[] = []
  withMembers(args, (members) => {
    groups.push(members)
    return ''
  })
  const [first] = groups
  if (!first) return null
  const other = groups.find((g) => g.length !== first.length)
  if (other)
    failAs('api/argument', {
      message: `the groups (${first.join(', ')}) and (${other.join(', ')}) have different lengths`,
      expected: `${first.length} names in each group`,
    })
  return first.map((_, k) => withMembers(args, (members) => members[k]!) as readonly unknown[])
}

/** Parses an expression as in schedules. Throws SptError `parse/…` and `check/…`, with spans in a source called `sizes`. */
function parseSizes(text: string, { params }: Kernel1): Expr {
  const source = { name: 'sizes', text }
  const sizes = new Set(params.flatMap((p) => (p.kind === 'size' ? [p.name] : [])))
  return withSources({ sources: new Map([[source.name, source]]) }, () => {
    const e = parseExpression(source)
    throwErrors(() => argumentOver(parameters(sizes, 'sizes of the kernel', []), e, 'integer'))
    return overSizes(e, { values: new Map(), constant: () => 0 })
  })
}
