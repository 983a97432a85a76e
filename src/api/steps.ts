/** The steps of schedules as methods: each gives a new kernel, or refuses with a reason. */
import type { ThreadAxis } from '../ir/expr.ts'
import type { AnyFormat } from '../ir/format.ts'
import type { Instr, Memory } from '../ir/instr.ts'
import type { CoordStep } from '../schedule/coords/steps.ts'
import type { CacheScope, CopyLayout, LoopRef, LoopStep } from '../schedule/steps.ts'
import { expectArgument, expectFlag, expectOptions, isRecord } from './argument-checks.ts'
import { chooseFormat } from './format-values.ts'
import { Handle } from './handle.ts'
import { instrOf, placeOf } from './instruction-lookup.ts'
import type { Surroundings } from './kernel-scope.ts'

/** `K`: the kernel that a step gives. */
export abstract class Steps<K> extends Handle {
  protected abstract get surroundings(): Surroundings
  /** Whether a step on loops has been applied, after which there are no coordinates. */
  protected abstract get onLoops(): boolean
  protected abstract onCoord(step: CoordStep): K
  protected abstract onLoop(step: LoopStep): K

  /**
   * Stores `buffer` (and what shares its structure) in a format: by name (`as('A', 'blocks', 16)`), as a schedule
   * writes it (`as('A', 'blocks(16) where (density(16) >= 0.5) + rows')`), or one of another program's. Arguments are
   * numbers, and names of lists and sets among the data.
   *
   * @throws SptError `api/unknown-format`, `parse/…`, `check/…`
   */
  as(buffer: string, format: string | AnyFormat, ...args: readonly (number | string)[]): K {
    const chosen = chooseFormat(format, args, this.surroundings.formats)
    return this.onCoord({ kind: 'as', buffer, ...chosen })
  }

  /** Stage I until the first step on loops, Stage II after it. */
  reorder(...loops: LoopRef[]): K {
    if (this.onLoops) return this.onLoop({ kind: 'reorder', loops })
    return this.onCoord({ kind: 'reorder', loops: names(loops) })
  }

  fuse(loops: readonly LoopRef[], into?: string): K {
    if (this.onLoops) return this.onLoop({ kind: 'fuse', loops, ...given({ into }) })
    return this.onCoord({ kind: 'fuse', loops: names(loops), ...given({ into }) })
  }

  /** Of every `by` iterations in turn, every second lot runs backwards. */
  serpentine(loop: LoopRef, by: number): K {
    return this.onLoop({ kind: 'serpentine', loop, by })
  }

  attach(loop: string, to: string): K {
    return this.onCoord({ kind: 'attach', loop, to })
  }

  split(loop: LoopRef, by: number, into?: readonly [string, string]): K {
    return this.onLoop({ kind: 'split', loop, by, ...given({ into }) })
  }

  tile(loops: readonly LoopRef[], by: readonly number[], into?: readonly string[]): K {
    return this.onLoop({ kind: 'tile', loops, by, ...given({ into }) })
  }

  /** `bind({ io: 'block.x', ii: 'thread.x' })`, or pairs where loops are handles. */
  bind(loops: Readonly<Record<string, ThreadAxis>> | readonly (readonly [LoopRef, ThreadAxis])[]): K {
    const pairs: readonly (readonly [LoopRef, ThreadAxis])[] = Array.isArray(loops)
      ? loops
      : isRecord(loops)
        ? Object.entries(loops as Record<string, ThreadAxis>)
        : []
    expectArgument(
      pairs.length > 0 && pairs.every((p) => Array.isArray(p)),
      'what is bound',
      loops,
      "loops with thread axes: { io: 'block.x', ii: 'thread.x' }",
    )
    return this.onLoop({ kind: 'bind', bindings: pairs.map(([loop, to]) => ({ loop, to })) })
  }

  /** `{ predicated: true }`: the last round runs whole, and changes nothing beyond the end. */
  unroll(loop: LoopRef, by?: number, more?: { readonly predicated?: boolean }): K {
    const options = more ?? {}
    expectOptions('unroll', options, ['predicated'])
    expectFlag('predicated', options.predicated)
    const predicated = options.predicated ? { predicated: true } : {}
    return this.onLoop({ kind: 'unroll', loop, ...given({ by }), ...predicated })
  }

  vectorize(loop: LoopRef): K {
    return this.onLoop({ kind: 'vectorize', loop })
  }

  /** `require('d', { multiple: 4 })` or `require('d', { equal: 128 })`: later steps and lowering rely on it. */
  require(size: string, what: { readonly multiple: number } | { readonly equal: number }): K {
    expectOptions('require', what as { multiple?: number; equal?: number }, ['multiple', 'equal'])
    const [, second] = Object.keys(what)
    expectArgument(
      Object.keys(what).length === 1,
      'what is required',
      second ?? what,
      '{ multiple } or { equal }',
    )
    const relation = 'equal' in what ? 'equal' : 'multiple'
    return this.onLoop({ kind: 'require', size, relation, by: 'equal' in what ? what.equal : what.multiple })
  }

  /** `place`: `shared`, `register`, or a declared memory, by name or as another program has it. */
  cache_read(
    buffer: string,
    at: LoopRef,
    place: CacheScope | string | Memory,
    into?: string,
    how?: CopyLayout,
  ): K {
    const layout = how ?? {}
    expectOptions('cache_read', layout, ['transposed', 'stride', 'by', 'padded'])
    return this.onLoop({
      kind: 'cache_read',
      buffer,
      at,
      ...placeOf(place, this.surroundings),
      ...layout,
      ...given({ into }),
    })
  }

  /**
   * What neighbouring iterations of a loop combine into one element of the buffer is combined in registers. `within`: the
   * loop over groups of threads that meet in shared memory; `into`: the buffer, and the nest, of what other shares have.
   */
  accumulate(
    buffer: string,
    over: LoopRef,
    by?: number,
    more?: { readonly within?: LoopRef; readonly into?: string },
  ): K {
    const options = more ?? {}
    expectOptions('accumulate', options, ['within', 'into'])
    return this.onLoop({ kind: 'accumulate', buffer, loop: over, ...given({ by }), ...options })
  }

  /** Copies into shared memory are made `by - 1` iterations before they are used. */
  pipeline(loop: LoopRef, by: number): K {
    return this.onLoop({ kind: 'pipeline', loop, by })
  }

  /** So many neighbouring blocks run together, and make copies that each would make alike once for all. */
  cluster(loop: LoopRef, by: number): K {
    return this.onLoop({ kind: 'cluster', loop, by })
  }

  cache_write(buffer: string, at: LoopRef, place: CacheScope | string | Memory, into?: string): K {
    return this.onLoop({
      kind: 'cache_write',
      buffer,
      at,
      ...placeOf(place, this.surroundings),
      ...given({ into }),
    })
  }

  /** The nest of a loop is done by a declared instruction, by name or as another program has it. */
  tensorize(loop: LoopRef, instr: string | Instr): K {
    return this.onLoop({ kind: 'tensorize', loop, instr: instrOf(instr, this.surroundings) })
  }

  compute_at(nest: string, at: LoopRef): K {
    return this.onLoop({ kind: 'compute_at', nest, at })
  }

  fission(loop: LoopRef, after: string | number): K {
    return this.onLoop({ kind: 'fission', loop, after })
  }

  rfactor(loop: LoopRef, into?: string): K {
    return this.onLoop({ kind: 'rfactor', loop, ...given({ into }) })
  }

  atomic(buffer: string): K {
    return this.onLoop({ kind: 'atomic', buffer })
  }

  /** Partial results instead of atomics, added in a fixed order. */
  combine(buffer: string): K {
    return this.onLoop({ kind: 'combine', buffer })
  }

  /** Nests on blocks in one launch. */
  merge(...nests: string[]): K {
    return this.onLoop({ kind: 'merge', nests })
  }
}

/** Those that list what they take. */
const OF_ANY_NUMBER: readonly string[] = ['constructor', 'as', 'reorder', 'merge']

// JavaScript drops what a call has beyond the parameters; here it is refused. Parameters without defaults count as `length`.
for (const [name, { value }] of Object.entries(Object.getOwnPropertyDescriptors(Steps.prototype))) {
  if (typeof value !== 'function' || OF_ANY_NUMBER.includes(name)) continue
  const refusing = function (this: unknown, ...args: unknown[]): unknown {
    expectArgument(
      args.length <= value.length,
      `argument ${value.length + 1} of ${name}`,
      args[value.length],
      value.length === 1 ? 'one argument' : `at most ${value.length} arguments`,
    )
    return value.apply(this, args)
  }
  Object.defineProperty(Steps.prototype, name, { value: refusing, writable: true, configurable: true })
}

type Given<T> = { readonly [N in keyof T]?: Exclude<T[N], undefined> }

/** Without what is left out. */
const given = <T extends object>(options: T): Given<T> =>
  Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined)) as Given<T>

/** Iterators of Stage I have names only; what else is given is refused with the step. */
function names(loops: readonly LoopRef[]): string[] {
  expectArgument(Array.isArray(loops), 'what is to be fused', loops, "a list of loops: ['i', 'j']")
  return loops.map((l) => (isRecord(l) ? (l as { var: string }).var : (l as string)))
}
