/** Resolution of names in a schedule: as written, or, inside of `each part of A as p`, to the names of one part. */

import { failAt } from '../../ast/diagnostics/diagnostic.ts'
import type * as Ast from '../../ast/nodes/nodes.ts'
import { printLoop } from '../../ast/print/print.ts'
import type { Kernel1 } from '../../ir/coordinates/stage1.ts'
import { iterationsOf } from '../../ir/coordinates/stage1-tree.ts'
import { labelled } from '../../ir/formats/format-tables.ts'
import { memoize } from '../../ir/memoize.ts'
import { loopsOf } from '../../ir/statements/definitions.ts'
import type { Kernel2 } from '../../ir/statements/loops.ts'
import { among } from '../refusals.ts'
import { axisOf, iterationsOver, loopOver, type StoredPart } from './parts.ts'

/** A kernel before a step. */
export interface Program {
  /** The kernel in Stage I. */
  readonly kernel: Kernel1
  /** The kernel in Stage II. */
  readonly loops: Kernel2
}

export interface Names {
  loop(r: Ast.LoopRef): string
  /** Returns the loops of a name in a list, in which a role stands for all of its loops. */
  loops(r: Ast.LoopRef): readonly string[]
  /** Returns a loop nest by the iteration or the step that created it. */
  nest(name: Ast.Ident): string
  buffer(name: Ast.Ident): string
  /** Returns the name of a new loop or buffer. */
  fresh(name: Ast.Ident, of: 'new loop' | 'new buffer'): string
  /** Returns the value of a constant of a part, such as `p.width`. */
  constant(e: Ast.Field): number
}

export const plainNames: Names = {
  loop: printLoop,
  loops: (r) => [printLoop(r)],
  nest: (name) => name.name,
  buffer: (name) => name.name,
  fresh: (name) => name.name,
  constant: (e) =>
    failAt('schedule/argument', e.span, {
      message: `${e.object.name} is not a part`,
      expected: 'a constant of a part, inside of each part of … as …',
    }),
}

interface KernelNames {
  readonly loops: ReadonlySet<string>
  readonly buffers: ReadonlySet<string>
}

/** Returns the names in a kernel. Cached, because every part of a buffer needs them. */
const namesIn = memoize(
  (kernel: Kernel2): KernelNames => ({
    loops: new Set(loopsOf(kernel.body).map((l) => l.name)),
    buffers: new Set(kernel.buffers.map((b) => b.name)),
  }),
)

/**
 * Names in one part. `p` is the part's buffer, and buffers that share its structure keep their names. `p.io` is a loop
 * of the part: by the format's name, by a name that a step of the block created, or by the name of another iterator if
 * one iteration of the part has it. `sum` and `sum.f` are the part's copy of an iteration and a loop of the copy. New
 * names have the label of the part as a suffix.
 */
export class PartNames implements Names {
  readonly #kernel: Kernel1
  readonly #loops: ReadonlySet<string>
  readonly #buffers: ReadonlySet<string>
  readonly #made: Set<string>

  /** @param made names that earlier steps of the block created */
  constructor(
    private readonly as: string,
    private readonly part: StoredPart,
    now: Program,
    private readonly outer: Names,
    made: Iterable<string> = [],
  ) {
    this.#kernel = now.kernel
    const { loops, buffers } = namesIn(now.loops)
    this.#loops = loops
    this.#buffers = buffers
    this.#made = new Set(made)
  }

  /** Names that steps created. */
  get made(): ReadonlySet<string> {
    return this.#made
  }

  loop(r: Ast.LoopRef): string {
    if (r.nest === null) return this.#bare(r)
    const name = this.#loopName(r.name.name)
    if (r.nest.name !== this.as) {
      const nest = this.nest(r.nest)
      return nest === r.nest.name ? this.outer.loop(r) : `${nest}.${name ?? r.name.name}`
    }
    if (name !== undefined) return loopOver(this.part, this.#kernel, name)
    const having = iterationsOver(this.part, this.#kernel).filter((it) =>
      it.iters.some((x) => x.name === r.name.name),
    )
    if (having.length === 1) return `${having[0]!.name}.${r.name.name}`
    const own = this.#own(r.name.name)
    if (having.length === 0 && this.#loops.has(own)) return own
    return this.#noLoop(
      r,
      having.map((it) => it.name),
    )
  }

  loops(r: Ast.LoopRef): readonly string[] {
    return [this.loop(r)]
  }

  /** A result of a step of the block, or a loop outside of the parts. */
  #bare(r: Ast.LoopRef): string {
    const { name } = r.name
    if (this.#made.has(name)) return this.#own(name)
    const known = this.#loops.has(name) || this.#loopName(name) === undefined
    if (known) return this.outer.loop(r)
    return failAt('schedule/unknown-loop', r.name.span, {
      message: `there is no loop ${name} outside of part ${this.part.buffer} (${this.part.formats[0]!.text})`,
      expected: `${this.as}.${name}, the loop of each part`,
      hint: `write ${this.as}.${name} in this block`,
    })
  }

  #noLoop(r: Ast.LoopRef, several: readonly string[]): never {
    const { buffer, formats } = this.part
    const what = `part ${buffer} (${formats[0]!.text})`
    const { name } = r.name
    const format = [...formats[0]!.names.keys()]
    const others = iterationsOver(this.part, this.#kernel).flatMap((it) => it.iters.map((x) => x.name))
    const candidates = [...new Set([...format, ...this.#made, ...others.filter((x) => !this.#isAxis(x))])]
    if (several.length > 0)
      return failAt('schedule/ambiguous-loop', r.name.span, {
        message: `${several.length} iterations of ${what} have a loop ${name}: ${several.join(', ')}`,
        expected: `the name of the iteration in front: ITERATION.${name}`,
      })
    return failAt('schedule/unknown-loop', r.name.span, {
      message: `${what} has no loop ${name}`,
      ...among(name, candidates),
      hint: `each step is for every part; outside, loops of a part are called ${this.#own(candidates[0]!)} and so on`,
    })
  }

  #isAxis(name: string): boolean {
    return this.part.formats.some((f) => [...f.names.values()].includes(name))
  }

  nest(name: Ast.Ident): string {
    if (this.#made.has(name.name)) return this.#own(name.name)
    const iterations = iterationsOf(this.#kernel.body)
    const copies = this.part.endings.map((ending) => labelled(name.name, ending))
    return copies.find((own) => iterations.some((it) => it.name === own)) ?? this.outer.nest(name)
  }

  buffer(name: Ast.Ident): string {
    if (name.name === this.as) return this.part.buffer
    if (this.#made.has(name.name)) return this.#own(name.name)
    const own = this.part.endings.map((ending) => labelled(name.name, ending))
    // Steps may have given each part a separate buffer in place of a common one.
    const divided = this.#buffers.has(name.name) ? undefined : own.find((b) => this.#buffers.has(b))
    return this.part.copies.get(name.name) ?? divided ?? this.outer.buffer(name)
  }

  fresh(name: Ast.Ident): string {
    this.#made.add(name.name)
    return this.#own(name.name)
  }

  constant(e: Ast.Field): number {
    if (e.object.name !== this.as) return this.outer.constant(e)
    const { formats } = this.part
    const known = formats.find((f) => f.constants.has(e.field.name))
    if (known) return known.constants.get(e.field.name)!
    const candidates = [...new Set(formats.flatMap((f) => [...f.constants.keys()]))]
    return failAt('schedule/no-constant', e.field.span, {
      message: `${formats[0]!.text} has no constant ${e.field.name}`,
      ...among(e.field.name, candidates),
    })
  }

  #own(name: string): string {
    return labelled(name, this.part.label)
  }

  #loopName(name: string): string | undefined {
    return this.#made.has(name) ? this.#own(name) : axisOf(this.part, this.#kernel, name)
  }
}
