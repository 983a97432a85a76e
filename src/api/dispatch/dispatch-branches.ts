/** Prepared schedules of a dispatch that share the memory of inputs and outputs; each is created on first use. */
import type { Bound } from '../../run/bind/index.ts'
import { type BareValues, withValues } from '../../run/bind/results/update-values.ts'
import { Executable } from '../../run/execution/execute.ts'
import { commonBuffers } from '../../run/execution/shared-buffers.ts'
import type { Tensor } from '../../storage/tensor.ts'
import type { CompiledSchedule } from '../compiled/compiled.ts'
import { type Branch, branchOf, type DispatchSource } from './dispatch-branch.ts'

export class DispatchBranches<V> {
  readonly #of: DispatchSource<V>
  readonly #made = new Map<string, Branch>()
  /** Schedules that cannot share memory, by text, with the `inout` tensors that they store in another format. */
  readonly #elsewhere = new Map<string, readonly string[]>()
  /** Written values by tensor, for schedules that are prepared later. */
  readonly #written = new Map<string, Tensor | BareValues>()
  /** The first schedule, which owns the memory. */
  readonly first: Branch

  private constructor(of: DispatchSource<V>, first: Branch) {
    this.#of = of
    this.first = first
    this.#made.set(first.text, first)
  }

  static async create<V>(of: DispatchSource<V>, first: V): Promise<DispatchBranches<V>> {
    const compiled = await of.compile(first)
    const { source } = compiled.compilation
    const executable = await Executable.create(compiled.program, of.bind(first, compiled), { source })
    return new DispatchBranches(of, branchOf(of.statistics, of.chosen(first).text, compiled, executable))
  }

  [Symbol.iterator](): Iterator<Branch> {
    return this.#made.values()
  }

  /** The tensors that keep a schedule from sharing memory; undefined if none is known. */
  elsewhere(text: string): readonly string[] | undefined {
    return this.#elsewhere.get(text)
  }

  /** Passes the branch of a schedule to `use`, at once if it exists. Undefined if the schedule cannot share memory. */
  with(variant: V, use: (branch: Branch) => Promise<void> | undefined): Promise<void> | undefined {
    const { text } = this.#of.chosen(variant)
    if (this.#elsewhere.has(text)) return undefined
    const known = this.#made.get(text)
    if (known) return use(known)
    return this.#another(variant, text).then((made) => made && use(made))
  }

  /** Prepares another schedule with the values written so far; undefined if it stores an `inout` tensor in another format. */
  async #another(variant: V, text: string): Promise<Branch | undefined> {
    const compiled = await this.#of.compile(variant)
    const bound = this.bind(variant, compiled)
    const { program, compilation } = compiled
    const buffers = commonBuffers(this.first.executable, { program, bound })
    const apart = program.plan.buffers.filter((b) => b.role === 'inout' && !buffers.has(b.name))
    if (apart.length > 0) {
      this.#elsewhere.set(
        text,
        apart.map((b) => b.name),
      )
      return undefined
    }
    const shared = { buffers, isOwn: true, release: () => {} }
    const { source } = compilation
    const executable = await Executable.create(program, bound, { source, shared })
    const made = branchOf(this.#of.statistics, text, compiled, executable)
    this.#made.set(text, made)
    return made
  }

  /** Binds the data, with the values written so far. */
  bind(variant: V, compiled: CompiledSchedule): Bound {
    let bound = this.#of.bind(variant, compiled)
    for (const [name, update] of this.#written) bound = withValues(bound, name, update).bound
    return bound
  }

  async write(name: string, update: Tensor | BareValues): Promise<void> {
    const all = [...this].map(({ executable }) => ({
      executable,
      written: withValues(executable.bound, name, update),
    }))
    this.#written.set(name, update)
    const there = new Set<unknown>()
    for (const { executable, written } of all) {
      const fresh = written.buffers.filter((b) => !there.has(executable.memory.get(b) ?? b))
      for (const b of written.buffers) there.add(executable.memory.get(b))
      await executable.rebind(written.bound, fresh)
    }
  }

  free(): void {
    for (const branch of this) if (branch !== this.first) branch.executable.free()
    this.first.executable.free()
  }
}
