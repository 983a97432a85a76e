/**
 * The context of a primitive: the kernel, resolution of names as the user writes them, fresh names, and errors that
 * print the loops.
 */

import { failAt, type Problem, type Span } from '../../ast/diagnostics/diagnostic.ts'
import { orList } from '../../ast/diagnostics/suggest.ts'
import { type FreshNames, nestNames, unusedName } from '../../ir/expressions/bound-names.ts'
import { print2 } from '../../ir/print/print-stage2.ts'
import type { LoopLocation } from '../../ir/statements/definitions.ts'
import { allocations, definitionsIn, findLoop, loopsOf } from '../../ir/statements/definitions.ts'
import type { Buffer, For, Kernel2 } from '../../ir/statements/loops.ts'
import { KernelNames, type LoopRef, loopNames, type NameBase } from '../names/kernel-names.ts'

/** A loop that a step replaced. */
export interface Consumed {
  readonly var: string
  readonly name: string
  readonly nest: string
  readonly how: 'split' | 'fused' | 'tiled' | 'merged'
  /** Names of the loops that replaced the loop; `nest.name` for a loop of another loop nest. */
  readonly into: readonly string[]
  /** The number of the step, from 1. */
  readonly step: number
}

export class Context implements FreshNames {
  readonly #own = new Set<string>()

  constructor(
    readonly kernel: Kernel2,
    readonly consumed: readonly Consumed[],
    readonly span: Span | undefined,
    private readonly known: KernelNames = new KernelNames(),
  ) {}

  get #names(): KernelNames {
    return this.known.follow(this.kernel, this.consumed)
  }

  #isTaken(name: string): boolean {
    return this.#own.has(name) || this.#names.has(name)
  }

  /** Returns the same context over a kernel that this step has already changed. */
  on(kernel: Kernel2, consumed: readonly Consumed[] = []): Context {
    const gone = consumed.length > 0 ? [...this.consumed, ...consumed] : this.consumed
    return new Context(kernel, gone, this.span, this.known)
  }

  /** Throws an error that prints the current loops, with `loops` marked. A `problem` has no loops. */
  refuse(code: string, loops: readonly For[], problem: Problem & { readonly loops?: never }): never {
    const notes = [print2(this.kernel, { mark: loops.map((l) => l.var), bodyOnly: true })]
    failAt(code, this.span, { ...problem, notes })
  }

  /**
   * Returns the loop of a name or handle. Throws `schedule/unknown-loop`, `schedule/ambiguous-loop` or
   * `schedule/consumed-loop`.
   */
  loop(ref: LoopRef): LoopLocation {
    const found = findLoop(this.kernel.body, typeof ref === 'string' ? this.#resolve(ref).var : ref.var)
    if (found) return found
    const gone = typeof ref === 'string' ? undefined : this.consumed.find((c) => c.var === ref.var)
    if (gone) this.#refuseConsumed(gone)
    return this.#refuseUnknown(typeof ref === 'string' ? ref : ref.var)
  }

  #resolve(name: string): For {
    const dot = name.indexOf('.')
    const [nest, own] = dot < 0 ? [undefined, name] : [name.slice(0, dot), name.slice(dot + 1)]
    let matches = this.#named(name)
    // Loops of copies and passes that steps created for a buffer keep the names of the original loops. A bare name
    // refers to the original loop.
    if (nest === undefined && matches.length > 1) {
      const made = new Set([
        ...allocations(this.kernel.body).keys(),
        ...this.kernel.buffers.map((b) => b.name),
      ])
      const originals = matches.filter((l) => !made.has(l.nest))
      if (originals.length > 0) matches = originals
    }
    if (matches.length > 1) {
      const candidates = [...new Set(matches.map((l) => `${l.nest}.${l.name}`))]
      this.refuse('schedule/ambiguous-loop', matches, {
        message: `${matches.length} loops are called ${name}`,
        ...(nest === undefined && candidates.length > 1
          ? { hint: `write ${orList(candidates.map((c) => `\`${c}\``))}` }
          : { expected: orList(candidates) }),
      })
    }
    const match = matches[0]
    if (match) return match
    const gone = this.consumed.findLast((c) => c.name === own && (nest === undefined || c.nest === nest))
    if (gone) this.#refuseConsumed(gone)
    return this.#refuseUnknown(name)
  }

  #named(name: string): readonly For[] {
    return this.#names.nestsWith(name).flatMap((s) => definitionsIn(s).named.get(name)!)
  }

  #refuseConsumed(gone: Consumed): never {
    this.refuse(
      'schedule/consumed-loop',
      loopsOf(this.kernel.body).filter(
        (l) =>
          (l.nest === gone.nest && gone.into.includes(l.name)) || gone.into.includes(`${l.nest}.${l.name}`),
      ),
      {
        message: `${gone.name} was ${gone.how} into ${gone.into.join(', ')} by step ${gone.step}`,
        expected: orList(gone.into),
      },
    )
  }

  #refuseUnknown(name: string): never {
    const loops = loopsOf(this.kernel.body)
    const nest = name.includes('.') ? name.slice(0, name.indexOf('.')) : undefined
    const candidates = [...new Set(loopNames(this.kernel.body).values())]
    this.refuse('schedule/unknown-loop', [], {
      message: `there is no loop ${name}`,
      expected: candidates.length > 0 ? orList(candidates) : 'a kernel with loops',
      ...(nest !== undefined && loops.every((l) => l.nest !== nest)
        ? { hint: `there is no iteration ${nest}; a part has a name only inside of each part of … as …` }
        : {}),
      lookup: { name, candidates },
    })
  }

  /** Returns the buffer or allocation of this name. Throws `schedule/unknown-buffer`. */
  buffer(name: string): Buffer {
    const { buffers, body } = this.kernel
    const found = buffers.find((b) => b.name === name)
    const holder = found ? undefined : body.find((s) => definitionsIn(s).allocs.has(name))
    if (found || holder) return found ?? definitionsIn(holder!).allocs.get(name)!
    const all = [...buffers, ...allocations(body).values()]
    const candidates = all.filter((b) => b.role !== 'index').map((b) => b.name)
    const parts = candidates.filter((c) => c.startsWith(`${name}_`))
    return this.refuse('schedule/unknown-buffer', [], {
      message: `there is no buffer ${name}`,
      expected: orList(parts.length > 0 ? parts : candidates),
      ...(parts.length > 0 && { hint: `inside of each part of … as p, ${name} is that of the part` }),
      lookup: { name, candidates },
    })
  }

  /** Claims and returns the name `base`, or `base_2` and so on if `base` is taken. */
  fresh(base: string): string {
    const name =
      this.known.placeholder?.((nameOf) => nameOf(base), 'definition') ??
      unusedName(base, (x) => this.#isTaken(x), this.#names.freeNumber(base))
    this.#own.add(name)
    return name
  }

  /** Returns an unused name of a loop nest. @param base - Its text, given the names of other loop nests */
  freshNest(base: NameBase): string {
    return this.known.placeholder?.(base, 'nest') ?? nestNames(this.kernel.body).fresh(base((name) => name))
  }

  /** Claims and returns the name that a user chose for a buffer. Throws `schedule/name-taken`. */
  claim(name: string): string {
    if (this.#isTaken(name))
      this.refuse('schedule/name-taken', [], {
        message: `the name ${name} is taken`,
        hint: 'choose another name',
      })
    this.#own.add(name)
    return name
  }

  /**
   * Throws `schedule/name-taken` if the loop nest already has a loop of one of these names, or if a name occurs
   * twice. `replaced` loops do not count.
   */
  claimLoops(nest: string, names: readonly string[], replaced: readonly For[]): void {
    const gone = new Set(replaced.map((l) => l.var))
    for (const [k, name] of names.entries()) {
      const clash = this.#named(`${nest}.${name}`).find((l) => !gone.has(l.var))
      if (clash || names.indexOf(name) !== k)
        this.refuse('schedule/name-taken', clash ? [clash] : replaced, {
          message: `${nest} already has a loop ${name}`,
          hint: 'choose another name',
        })
    }
  }
}
