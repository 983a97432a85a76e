/**
 * Names inside of a schedule function: parameters stand for the loops, loop nests and buffers of the call, and new names for
 * names that are unique in the schedule.
 */
import type * as Ast from '../../ast/nodes/nodes.ts'
import type { Names } from './part-names.ts'

/** The names that a call passes. */
export interface CallNames {
  readonly loops: ReadonlyMap<string, Ast.LoopRef>
  /** Loop nests and buffers. */
  readonly others: ReadonlyMap<string, Ast.Ident>
  /** The new names of the function, as the caller has them. */
  readonly made: ReadonlyMap<string, string>
}

export class FunctionNames implements Names {
  readonly #call: CallNames
  readonly #outer: Names
  /** The loop nest of each new loop, if the steps name it. */
  readonly #nests = new Map<string, Ast.Ident>()
  /** The loop nest of the loop that was resolved last: new loops of a step follow its loops. */
  #nest: Ast.Ident | null = null

  constructor(call: CallNames, outer: Names) {
    this.#call = call
    this.#outer = outer
  }

  loop(r: Ast.LoopRef): string {
    return this.#outer.loop(this.#resolved(r))
  }

  loops(r: Ast.LoopRef): readonly string[] {
    return this.#outer.loops(this.#resolved(r))
  }

  nest(name: Ast.Ident): string {
    return this.#outer.nest(this.#other(name))
  }

  buffer(name: Ast.Ident): string {
    return this.#outer.buffer(this.#other(name))
  }

  fresh({ name, span }: Ast.Ident, of: 'new loop' | 'new buffer'): string {
    if (of === 'new loop' && this.#nest) this.#nests.set(name, this.#nest)
    return this.#outer.fresh({ name: this.#call.made.get(name) ?? name, span }, of)
  }

  constant(e: Ast.Field): number {
    return this.#outer.constant({ ...e, object: this.#other(e.object) })
  }

  /** Returns the caller's name of a loop. `copy.i` with a loop parameter i is the loop of that name in the loop nest `copy`. */
  #resolved(r: Ast.LoopRef): Ast.LoopRef {
    const { name, span } = r.name
    const given = this.#call.loops.get(name)
    const own = { name: given?.name.name ?? this.#call.made.get(name) ?? name, span }
    if (r.nest) this.#nest = this.#other(r.nest)
    else this.#nest = given ? given.nest : (this.#nests.get(name) ?? null)
    return { nest: this.#nest, name: own, span: r.span }
  }

  #other({ name, span }: Ast.Ident): Ast.Ident {
    return { name: this.#call.others.get(name)?.name ?? this.#call.made.get(name) ?? name, span }
  }
}

/** The new names of function calls in a schedule: those of the function, numbered if the schedule has the same name. */
export class NewNames {
  readonly #taken: Set<string>
  /** The names of each call. Steps for each part resolve a call again. */
  readonly #calls = new Map<string, ReadonlyMap<string, string>>()

  constructor(taken: Iterable<string>) {
    this.#taken = new Set(taken)
  }

  /** Returns the caller's names for new names. `given` has the results that the call names. */
  of(call: string, made: Iterable<string>, given: ReadonlyMap<string, string>): ReadonlyMap<string, string> {
    let names = this.#calls.get(call)
    if (!names) {
      names = new Map([...made].map((name) => [name, given.get(name) ?? this.#free(name)]))
      this.#calls.set(call, names)
      // Inside of the call, these words have another meaning.
      for (const name of names.keys()) this.#taken.add(name)
    }
    return names
  }

  #free(name: string): string {
    let free = name
    for (let k = 2; this.#taken.has(free); k++) free = `${name}${k}`
    this.#taken.add(free)
    return free
  }
}
