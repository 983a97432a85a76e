/**
 * A prepared kernel whose schedule is chosen by what its runs find: how much of a tensor a format `live in place` covers. Each run
 * takes the schedule that the choice gives for the newest coverage there is. A schedule that finds it leaves it behind, as lengths
 * of lists; of what it does not find, now and then, the launches of one that does are run alone. It is read back while nobody waits.
 */
import { orRefused, SptError } from '../ast/diagnostic.ts'
import { type BareValues, withValues } from '../run/bind/update-values.ts'
import { Executable } from '../run/execute.ts'
import { inCommon } from '../run/same-kernel.ts'
import type { Tensor } from '../storage/tensor.ts'
import type { Chosen } from './choice-conditions.ts'
import type { CompiledSchedule } from './compiled.ts'
import { foundShare } from './coverage.ts'
import { type FoundShare, liveOf, type RunChoice, type Selecting } from './selecting.ts'
import { type Branch, branchOf, covering, finds, type Selectable, telling } from './selection-branch.ts'
import { Readings } from './selection-readings.ts'
import { chosenWithRoom, foundShares, hasRoom, type Known, updates } from './selection-room.ts'

/** Samples are at most so many runs apart. */
const MOST_APART = 16

export class Selection<V> implements Selecting<CompiledSchedule> {
  readonly #of: Selectable<V>
  /** Shares that runs may tell. */
  readonly #live: readonly string[]
  readonly #branches = new Map<string, Branch>()
  /** New values, by tensor: schedules that are chosen later start with them. */
  readonly #written = new Map<string, Tensor | BareValues>()
  readonly #found = new Map<string, Known>()
  /** Schedules without room for what they found last. */
  readonly #full = new Set<Branch>()
  readonly owner: Executable
  #now: Branch
  #overflowed: string | null = null
  /** That a run was in vain under since the latest one was asked for. */
  readonly #tried = new Set<Branch>()
  #chosen: Chosen
  /** By what it was chosen, and what was found since. */
  #covered: Readonly<Record<string, FoundShare>>
  /** What tells a share where the schedule that runs does not; `null` where nothing can. */
  readonly #observers = new Map<string, Branch | null>()
  /** Whether something was found since the latest decision. */
  #isNews = false
  /** Runs under this schedule; that of the next sample. */
  #runs = 0
  #sampled = 1
  readonly #readings = new Readings()
  #isFreed = false

  private constructor(of: Selectable<V>, first: V, compiled: CompiledSchedule, executable: Executable) {
    this.#of = of
    this.#live = liveOf(of.statistics).map(([name]) => name)
    this.owner = executable
    const chosen = of.chosen(first)
    this.#now = this.#branch(chosen.text, compiled, executable)
    this.#chosen = chosen
    this.#covered = foundShares(this.#of, chosen, this.#found, new Set())
  }

  /**
   * @param first what the host chooses
   * @param isFound whether the device can be asked first: that takes the host no look at the data
   */
  static async create<V>(of: Selectable<V>, first: () => V, isFound: boolean): Promise<Selection<V>> {
    const asked = isFound ? await Selection.#asked(of) : null
    if (asked) return asked
    const selection = await Selection.#made(of, first())
    try {
      await selection.#observe()
    } catch (e) {
      selection.free()
      throw e
    }
    return selection
  }

  static async #made<V>(of: Selectable<V>, first: V): Promise<Selection<V>> {
    const compiled = await of.compile(first)
    const { source } = compiled.compilation
    const executable = await Executable.create(compiled.program, of.bind(first, compiled), { source })
    return new Selection(of, first, compiled, executable)
  }

  /** Of what is bound the launches of what tells the coverage tell it; nothing where they are refused, or cannot run alone. */
  static async #asked<V>(of: Selectable<V>): Promise<Selection<V> | null> {
    let made: Selection<V> | undefined
    try {
      made = await Selection.#made(of, covering(of, 0))
      const { findings, commands } = made.#now
      if (findings.length > 0 && commands.length > 0) {
        await made.#observe()
        for (const branch of [made.#now, ...made.#others()]) await made.#sample(branch, 'given')
        await made.next()
        return made
      }
    } catch (e) {
      if (!(e instanceof SptError)) throw e
    }
    made?.free()
    return null
  }

  get kernel(): CompiledSchedule {
    return this.#now.compiled
  }

  get executable(): Executable {
    return this.#now.executable
  }

  get choice(): RunChoice {
    const predicted = [...this.#branches.values()].map(({ text, times, findings: [own] }) => ({
      text,
      // What is not found makes no difference.
      milliseconds: times.at(own ? (this.#found.get(own.statistic)?.value ?? 1) : 0),
    }))
    const [covered, overflowed] = [this.#covered, this.#overflowed]
    return { ...this.#chosen, covered, overflowed, regret: this.#regret(), predicted }
  }

  #regret(): string | null {
    if (Object.values(this.#covered).every((c) => c.found === null)) return null
    const now = orRefused(() => this.#of.chosen(this.#decided().variant).text)
    return now instanceof SptError || now === this.#now.text ? null : now
  }

  next(): Promise<void> | undefined {
    this.#tried.clear()
    return this.#isNews ? this.#decide() : undefined
  }

  #decide(): Promise<void> | undefined {
    this.#isNews = false
    const { variant, overflowed, counted } = this.#decided()
    const chosen = this.#of.chosen(variant)
    return this.#with(variant, (branch) => {
      this.#overflowed = overflowed
      if (branch !== this.#now) [this.#runs, this.#sampled] = [0, 1]
      this.#now = branch
      this.#chosen = chosen
      this.#covered = foundShares(this.#of, chosen, this.#found, counted)
      return this.#observe()
    })
  }

  async overflowed(): Promise<boolean> {
    const full = this.#now
    this.#tried.add(full)
    await this.known()
    await this.#read(full, 'last run')
    // No run has told the others' shares of these data, and none may come that does.
    for (const branch of this.#others()) if (!this.#tried.has(branch)) await this.#sample(branch, 'sample')
    if (updates(full)) return false
    await this.#decide()
    return !this.#tried.has(this.#now)
  }

  ran(milliseconds?: number): Promise<void> | undefined {
    const now = this.#now
    const [own] = now.findings
    if (!own && milliseconds !== undefined) now.times.add(0, milliseconds)
    const others = ++this.#runs < this.#sampled ? [] : this.#others()
    if (others.length > 0) this.#sampled += Math.min(this.#sampled, MOST_APART)
    if (!own && others.length === 0) return undefined
    const read = async (): Promise<void> => {
      if (own) await this.#read(now, 'last run')
      const share = own && this.#found.get(own.statistic)
      if (milliseconds !== undefined && share) now.times.add(share.value, milliseconds)
      for (const branch of others) await this.#sample(branch, 'sample')
    }
    // Nothing is ever under way there.
    if (now.executable.program.device.kind === 'cpu') return read()
    this.#readings.later(read)
    return undefined
  }

  known(): Promise<void> {
    return this.#readings.known()
  }

  async ahead(): Promise<void> {
    for (const share of [0, 1]) await this.#with(covering(this.#of, share), () => undefined)
    for (const name of this.#live) await this.#with(covering(this.#of, 1, name), () => undefined)
  }

  async write(name: string, update: Tensor | BareValues): Promise<void> {
    const all = [...this.#branches.values()].map(({ executable }) => ({
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
    this.#isFreed = true
    for (const { executable } of this.#branches.values()) if (executable !== this.owner) executable.free()
    this.owner.free()
  }

  #decided(): ReturnType<typeof chosenWithRoom<V>> {
    const found = new Map([...this.#found].map(([name, { value }]) => [name, value]))
    const full = new Map([...this.#full].map((b) => [b.text, b]))
    return chosenWithRoom(this.#of, found, (text) => full.get(text))
  }

  /**
   * Another schedule, with what has been written by now, on the memory of the first; nothing where it stores what the kernel
   * updates in other memory.
   */
  async #another(variant: V): Promise<Branch | undefined> {
    const { text } = this.#of.chosen(variant)
    const compiled = await this.#of.compile(variant)
    let bound = this.#of.bind(variant, compiled)
    for (const [name, update] of this.#written) bound = withValues(bound, name, update).bound
    const { program, compilation } = compiled
    const buffers = inCommon(this.owner, { program, bound })
    if (program.plan.buffers.some((b) => b.role === 'inout' && !buffers.has(b.name))) return undefined
    const shared = { buffers, isOwn: true, release: () => {} }
    const { source } = compilation
    return this.#branch(text, compiled, await Executable.create(program, bound, { source, shared }))
  }

  #branch(text: string, compiled: CompiledSchedule, executable: Executable): Branch {
    const branch = branchOf(this.#of.statistics, text, compiled, executable)
    this.#branches.set(text, branch)
    return branch
  }

  /** Of what the schedule that runs does not find, whatever does; of what has no room, whether it has by now. */
  #others(): readonly Branch[] {
    const names = this.#live.filter((name) => !finds(this.#now, name))
    const full = [...this.#full].filter((b) => b !== this.#now && b.commands.length > 0)
    return [...new Set([...names.flatMap((name) => this.#observers.get(name) ?? []), ...full])]
  }

  #observe(): Promise<void> | undefined {
    const unseen = this.#live.filter((name) => !finds(this.#now, name) && !this.#observers.has(name))
    if (unseen.length === 0) return undefined
    const all = async (): Promise<void> => {
      for (const name of unseen) this.#observers.set(name, await this.#observerOf(name))
    }
    return all()
  }

  /** What tells a share finds it out by itself; where all that does is refused, or cannot run alone, nothing does. */
  async #observerOf(name: string): Promise<Branch | null> {
    let found: Branch | null = null
    for (const variant of telling(this.#of, name))
      try {
        await this.#with(variant, (branch) => {
          if (branch.commands.length > 0) found = branch
          return undefined
        })
        if (found) return found
      } catch (e) {
        if (!(e instanceof SptError)) throw e
      }
    return null
  }

  async #sample(branch: Branch, from: FoundShare['from']): Promise<void> {
    await branch.executable.program.device.run(branch.commands)
    await this.#read(branch, from)
  }

  /** At once where it has been made before; not at all where it cannot be. */
  #with(variant: V, use: (branch: Branch) => Promise<void> | undefined): Promise<void> | undefined {
    const known = this.#branches.get(this.#of.chosen(variant).text)
    if (known) return use(known)
    return this.#another(variant).then((made) => made && use(made))
  }

  async #read(branch: Branch, from: FoundShare['from']): Promise<void> {
    const { executable, findings } = branch
    const { params } = executable.bound
    const isFull = !(await hasRoom(branch))
    if (isFull !== this.#full.has(branch)) this.#isNews = true
    isFull ? this.#full.add(branch) : this.#full.delete(branch)
    for (const { statistic, found, elements } of findings) {
      const counts = await Promise.all(found.parts.map((p) => executable.values(p.counts)))
      const value = foundShare(found, counts, elements, params)
      if (this.#isFreed) return
      const before = this.#found.get(statistic)
      if (before?.value !== value || before.from !== from) this.#isNews = true
      this.#found.set(statistic, { value, from })
      const share = this.#covered[statistic]
      if (share) this.#covered = { ...this.#covered, [statistic]: { ...share, found: value } }
    }
  }
}
