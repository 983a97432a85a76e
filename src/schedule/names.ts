/** What the names in a schedule mean: as written, or, inside of `each part of A as p`, those of one part. */
import { fail, type Span } from '../ast/diagnostic.ts'
import type * as Ast from '../ast/nodes.ts'
import type { PartInstance } from '../ir/format.ts'
import type { Kernel2 } from '../ir/loops.ts'
import type { Kernel1, Reformat } from '../ir/stage1.ts'
import { loopsOf } from '../ir/tree.ts'
import { iterationsOf } from './coords/find.ts'

/** A kernel as it is before a step. */
export interface Program {
  /** Stage I. */
  readonly kernel: Kernel1
  /** Stage II. */
  readonly loops: Kernel2
}

export interface Names {
  loop(r: Ast.LoopRef): string
  /** A nest, by the iteration or the step that made it. */
  nest(name: Ast.Ident): string
  buffer(name: Ast.Ident): string
  /** A name that a step gives to something new. */
  fresh(name: Ast.Ident): string
  /** `p.width` */
  constant(e: Ast.Field): number
}

export const plainNames: Names = {
  loop: (r) => (r.nest ? `${r.nest.name}.${r.name.name}` : r.name.name),
  nest: (name) => name.name,
  buffer: (name) => name.name,
  fresh: (name) => name.name,
  constant: (e) =>
    fail({
      code: 'schedule/argument',
      message: `${e.object.name} is no part`,
      span: e.span,
      expected: 'a constant of a part, inside of each part of … as …',
    }),
}

/** The parts that a buffer is stored in. @throws SptError `schedule/no-parts` */
export function partsOf(
  kernel: Kernel1,
  buffer: { readonly name: string; readonly span?: Span | undefined },
): Reformat {
  const found = kernel.reformats.findLast((r) => r.buffers.some((b) => b.name === buffer.name))
  if (found) return found
  const stored = [...new Set(kernel.reformats.flatMap((r) => r.buffers.map((b) => b.name)))]
  return fail({
    code: 'schedule/no-parts',
    message: `no step before stores ${buffer.name} in a format`,
    ...(buffer.span && { span: buffer.span }),
    expected: stored.length > 0 ? `one of ${stored.join(', ')}` : `${buffer.name} as … before`,
    ...(stored.length > 0 ? { lookup: { name: buffer.name, candidates: stored } } : {}),
    hint: `write \`${buffer.name} as …\` first`,
  })
}

/** `name_label`, or the name where there is one part. */
export const labelled = (name: string, label: string): string => (label === '' ? name : `${name}_${label}`)

/**
 * Names in one part. `p` is the part's buffer, and what shares its structure keeps its name; `p.io` a loop of it, by the format's name, by one that a step of
 * the block gave, or by that of another iterator where one iteration of the part has it; `sum` and `sum.f` are the
 * part's copy of an iteration and a loop of that. What steps make gets the label at its end.
 */
export class PartNames implements Names {
  readonly #as: string
  readonly #part: PartInstance
  /** The part's copies of the buffers with this structure, by their names before. */
  readonly #buffers: ReadonlyMap<string, string>
  readonly #buffer: string
  readonly #kernel: Kernel1
  readonly #outer: Names
  /** Loops that there are before the block. */
  readonly #loops: ReadonlySet<string>
  readonly #made = new Set<string>()

  constructor(step: Ast.EachStep, reformat: Reformat, part: number, now: Program, outer: Names) {
    this.#as = step.as.name
    this.#part = reformat.instance.parts[part]!
    this.#buffers = new Map(reformat.buffers.map((b) => [b.name, b.parts[part]!]))
    this.#buffer = this.#buffers.get(step.buffer.name)!
    this.#kernel = now.kernel
    this.#loops = new Set(loopsOf(now.loops.body).map((l) => l.name))
    this.#outer = outer
  }

  loop(r: Ast.LoopRef): string {
    if (r.nest === null) return this.#made.has(r.name.name) ? this.#own(r.name.name) : this.#outer.loop(r)
    const name = this.#loopName(r.name.name)
    if (r.nest.name !== this.#as) {
      const nest = this.nest(r.nest)
      return nest === r.nest.name ? this.#outer.loop(r) : `${nest}.${name ?? r.name.name}`
    }
    if (name !== undefined) return name
    const having = this.#iterations().filter((it) => it.iters.some((x) => x.name === r.name.name))
    if (having.length === 1) return `${having[0]!.name}.${r.name.name}`
    const own = this.#own(r.name.name)
    if (having.length === 0 && this.#loops.has(own)) return own
    return this.#noLoop(
      r,
      having.map((it) => it.name),
    )
  }

  /** `several`: iterations of the part that have it. */
  #noLoop(r: Ast.LoopRef, several: readonly string[]): never {
    const what = `part ${this.#buffer} (${this.#part.instance.text})`
    const { name } = r.name
    const format = [...this.#part.instance.names.keys()]
    const others = this.#iterations().flatMap((it) => it.iters.map((x) => x.name))
    const candidates = [...new Set([...format, ...this.#made, ...others.filter((x) => !this.#isAxis(x))])]
    if (several.length > 0)
      return fail({
        code: 'schedule/ambiguous-loop',
        message: `${several.length} iterations of ${what} have a loop ${name}: ${several.join(', ')}`,
        span: r.name.span,
        expected: `the name of one of them before it: ITERATION.${name}`,
      })
    return fail({
      code: 'schedule/unknown-loop',
      message: `${what} has no loop ${name}`,
      span: r.name.span,
      expected: `one of ${candidates.join(', ')}`,
      lookup: { name, candidates },
      hint: `each step is for all parts; outside, loops of one part are called ${this.#own(candidates[0]!)} and so on`,
    })
  }

  #isAxis(name: string): boolean {
    return [...this.#part.instance.names.values()].includes(name)
  }

  nest(name: Ast.Ident): string {
    const own = this.#own(name.name)
    const copied = iterationsOf(this.#kernel.body).some((it) => it.name === own)
    return copied || this.#made.has(name.name) ? own : this.#outer.nest(name)
  }

  buffer(name: Ast.Ident): string {
    if (name.name === this.#as) return this.#buffer
    if (this.#made.has(name.name)) return this.#own(name.name)
    return this.#buffers.get(name.name) ?? this.#outer.buffer(name)
  }

  fresh(name: Ast.Ident): string {
    this.#made.add(name.name)
    return this.#own(name.name)
  }

  constant(e: Ast.Field): number {
    if (e.object.name !== this.#as) return this.#outer.constant(e)
    const { constants, text } = this.#part.instance
    const value = constants.get(e.field.name)
    if (value !== undefined) return value
    const candidates = [...constants.keys()]
    return fail({
      code: 'schedule/no-constant',
      message: `${text} has no constant ${e.field.name}`,
      span: e.field.span,
      ...(candidates.length > 0 ? { expected: `one of ${candidates.join(', ')}` } : {}),
      lookup: { name: e.field.name, candidates },
    })
  }

  #own(name: string): string {
    return labelled(name, this.#part.label)
  }

  #loopName(name: string): string | undefined {
    return this.#made.has(name) ? this.#own(name) : this.#part.instance.names.get(name)
  }

  /** The iterations over the part. */
  #iterations() {
    const axes = new Set(this.#part.instance.axes.map((a) => a.name))
    return iterationsOf(this.#kernel.body).filter((it) => it.iters.some((x) => axes.has(x.axis)))
  }
}
