/**
 * Schedules of isomorphic loop nests, which are equal up to names and have equal surroundings. The steps are applied to a model, whose names are
 * placeholders. The result is repeated for each loop nest, with names in place of the placeholders.
 */
import { SptError } from '../../ast/diagnostics/diagnostic.ts'
import type { Kernel1 } from '../../ir/coordinates/stage1.ts'
import { unusedName } from '../../ir/expressions/bound-names.ts'
import { getOrAdd, memoize } from '../../ir/memoize.ts'
import { nodesOnce, renamed } from '../../ir/node-trees.ts'
import { readsOf, writesOf } from '../../ir/statements/accesses.ts'
import { declaredByName, definitionsIn, loopsOf } from '../../ir/statements/definitions.ts'
import type { Buffer, For, Kernel2, Stmt } from '../../ir/statements/loops.ts'
import { KernelNames, type NameBase } from '../names/kernel-names.ts'
import type { Step } from '../steps/resolve.ts'
import type { LoopStep } from '../steps/step-data.ts'
import { apply, applyKnown, type ScheduleState, start } from './state.ts'

/** Loop nests that are scheduled together: a loop nest with epilogues. */
export interface NestGroup {
  /** Equal for groups that are isomorphic. */
  readonly key: string
  readonly nests: readonly For[]
  /** Names of the kernel by their placeholders. */
  readonly names: ReadonlyMap<string, string>
  /** The loop nests, and the other statements that use their buffers, with placeholders for the names. */
  readonly model: () => Kernel2
}

/** A new name in the steps on a model. */
interface NewName {
  readonly placeholder: string
  readonly of: 'loop' | 'buffer' | 'definition' | 'nest'
  readonly base: NameBase
}

interface KnownStep {
  readonly step: LoopStep
  readonly names: readonly NewName[]
  /** New names that are unused after the step. */
  readonly unused: readonly NewName[]
}

/** Steps on the model of a group, and their result. */
export interface KnownSteps {
  readonly steps: readonly KnownStep[]
  readonly nests: readonly Stmt[]
  readonly consumed: ScheduleState['consumed']
  readonly added: readonly Buffer[]
  /** Names of buffers that nothing uses any more. */
  readonly removed: readonly string[]
}

const PLACEHOLDER = /__\d+__/g

/** Fields of statements and expressions that hold names. */
const NAMES: ReadonlySet<string> = new Set(['var', 'name', 'buffer', 'absent', 'nest'])
/** Lists of a kernel that hold names of buffers. */
const LISTS = ['ascending', 'permutations', 'distinct'] as const

const isLoopName = (field: string, of: object): boolean =>
  field === 'name' && 'kind' in of && of.kind === 'for'

/** The statements of a body that use each buffer, by index. */
const usersIn = memoize((body: Kernel2['body']): ReadonlyMap<string, ReadonlySet<number>> => {
  const users = new Map<string, Set<number>>()
  for (const [k, s] of body.entries())
    for (const buffers of [readsOf([s]), writesOf([s])])
      for (const b of buffers) getOrAdd(users, b, () => new Set<number>()).add(k)
  return users
})

/** Loop nests with placeholders for names. */
interface Structure {
  readonly members: readonly For[]
  readonly placeholders: ReadonlyMap<string, string>
  /** Names of the declared buffers that occur. */
  readonly used: readonly string[]
  /** The loop nests and their buffers without names. */
  readonly data: unknown
}

function structureOf(nests: readonly For[], kernel: Kernel2): Structure {
  const declared = declaredByName(kernel.buffers)
  const placeholders = new Map<string, string>()
  const used: string[] = []
  const members = renamed(nests, (text, field, of) => {
    if (!NAMES.has(field) || kernel.params.some((p) => p.name === text)) return text
    const id = `${isLoopName(field, of) ? 'loop' : field === 'nest' ? 'nest' : ''} ${text}`
    const known = placeholders.get(id)
    if (known) return known
    if (declared.has(text)) used.push(text)
    const made = `__${placeholders.size}__`
    placeholders.set(id, made)
    return made
  })
  const types = used.map((b) => [
    { ...declared.get(b), name: '' },
    ...LISTS.map((list) => kernel[list]?.includes(b)),
  ])
  return { members, placeholders, used, data: [members, types] }
}

/** A text that is equal for loop nests that are equal up to names; sizes keep their names. */
export const structureKey = (nest: For, kernel: Kernel2): string =>
  JSON.stringify(structureOf([nest], kernel).data, nodesOnce())

/** The group of top-level loop nests; `undefined` in kernels with rounds, or if facts name the loop nests. */
export function nestGroup(kernel: Kernel2, names: readonly string[]): NestGroup | undefined {
  const { body, buffers, params, disjointWrites = [], lostWrites, runtimeLists } = kernel
  const nests = body.filter((s): s is For => s.kind === 'for' && names.includes(s.nest))
  const isNamed = disjointWrites.some((w) => nests.some((n) => w.nests.some((g) => g.includes(n.nest))))
  const hasRounds = body.some((s) => s.kind === 'rounds')
  if (isNamed || hasRounds || lostWrites || runtimeLists) return undefined
  if (params.some((p) => p.name.search(PLACEHOLDER) >= 0)) return undefined
  const { members, placeholders, used, data } = structureOf(nests, kernel)
  const users = usersIn(body)
  const neighbours = new Set(used.flatMap((b) => [...(users.get(b) ?? [])]))
  for (const n of nests) neighbours.delete(body.indexOf(n))
  const around = [...neighbours]
    .sort((a, b) => a - b)
    .map((k) => {
      const [reads, writes] = [readsOf([body[k]!]), writesOf([body[k]!])]
      const uses = used.map((b) => (reads.has(b) ? 1 : 0) + (writes.has(b) ? 2 : 0))
      return { s: body[k]!, k, uses }
    })
  const places = nests.map((n) => body.indexOf(n))
  const surroundings = around.map(({ s, k, uses }) => [s.kind, places.filter((p) => p < k).length, uses])
  const key = JSON.stringify([data, surroundings, kernel.facts], nodesOnce())
  return {
    key,
    nests,
    names: new Map([...placeholders].map(([id, made]) => [made, id.slice(id.indexOf(' ') + 1)])),
    model() {
      const own = (text: string, field: string): string =>
        (NAMES.has(field) && field !== 'nest' && placeholders.get(` ${text}`)) || text
      const others = new Map(around.map(({ s }) => [s, renamed(s, own)]))
      const nameOf = (b: string): string => placeholders.get(` ${b}`) ?? b
      return Object.freeze({
        ...kernel,
        ...Object.fromEntries(LISTS.map((list) => [list, kernel[list]?.map(nameOf)])),
        buffers: buffers.map((b) =>
          used.includes(b.name) ? Object.freeze({ ...b, name: nameOf(b.name) }) : b,
        ),
        body: Object.freeze(body.flatMap((s) => members[nests.indexOf(s as For)] ?? others.get(s) ?? [])),
      })
    },
  }
}

/** The model of a group under a schedule. The names of new loops and buffers are placeholders. */
export class ModelSchedule {
  readonly compilation: { readonly kernel: Kernel1; readonly loops: Kernel2 }

  private constructor(
    kernel: Kernel1,
    private readonly group: NestGroup,
    private readonly model: Kernel2,
    private readonly state: ScheduleState,
    private readonly made: NewName[],
    private readonly steps: KnownSteps['steps'],
  ) {
    this.compilation = { kernel, loops: state.kernel }
  }

  static of(kernel: Kernel1, group: NestGroup): ModelSchedule {
    const made: NewName[] = []
    const model = group.model()
    const names = Object.assign(new KernelNames(), {
      placeholder: (base: NameBase, of: NewName['of']) => newName(made, group.names.size, base, of),
    })
    return new ModelSchedule(kernel, group, model, start(model, 0, names), made, [])
  }

  placeholder(base: string, of: NewName['of']): string {
    return newName(this.made, this.group.names.size, (nameOf) => nameOf(base), of)
  }

  apply(steps: readonly Step[]): ModelSchedule {
    return steps.reduce<ModelSchedule>((now, s) => (s.stage === 2 ? now.#step(s.step) : now), this)
  }

  #step(step: LoopStep): ModelSchedule {
    const { compilation, group, model, made, steps } = this
    const first = made.length
    const state = apply(this.state, step)
    const into = 'into' in step ? [step.into].flat() : []
    const names = made.filter((n, k) => k >= first || into.includes(n.placeholder))
    const unused = made.filter((n) => !isUsed(state, n) && (names.includes(n) || isUsed(this.state, n)))
    return new ModelSchedule(compilation.kernel, group, model, state, made, [
      ...steps,
      { step, names, unused },
    ])
  }

  /** An error with the names of the group. */
  withNames(error: SptError): SptError {
    const bases = new Map(this.made.map((n) => [n.placeholder, n.base]))
    const fill = (text: string): string =>
      text.replace(PLACEHOLDER, (p) => this.group.names.get(p) ?? bases.get(p)!(fill))
    return new SptError(renamed(error.diagnostics, fill))
  }

  /** The steps and the result; `null` if the result cannot be repeated by names alone. */
  known(): KnownSteps | null {
    const { group, model, steps } = this
    const { kernel, consumed } = this.state
    const others = model.body.filter((s) => !isNestOf(s, group))
    const nests = kernel.body.filter((s) => !others.includes(s))
    const at = kernel.body.indexOf(nests[0]!)
    const isInPlace =
      at === model.body.findIndex((s) => isNestOf(s, group)) &&
      nests.every((s, k) => kernel.body[at + k] === s) &&
      others.every((s, k) => kernel.body[k < at ? k : k + nests.length] === s)
    const added = kernel.buffers.filter((b) => !model.buffers.includes(b))
    const removed = model.buffers.flatMap((b) => (kernel.buffers.includes(b) ? [] : [b.name]))
    const bound = nests.flatMap((s) => [
      ...definitionsIn(s).names,
      ...definitionsIn(s).loops.map((l) => l.nest),
    ])
    const isNamed = [...bound, ...added.map((b) => b.name)].every((n) => n.search(PLACEHOLDER) === 0)
    const isSame = kernel.facts === model.facts && kernel.disjointWrites === model.disjointWrites
    return isInPlace && isNamed && isSame ? { steps, nests, consumed, added, removed } : null
  }
}

function newName(made: NewName[], first: number, base: NameBase, of: NewName['of']): string {
  const placeholder = `__${first + made.length}__`
  made.push({ placeholder, of, base })
  return placeholder
}

function isUsed({ kernel, consumed, names }: ScheduleState, { placeholder: name, of }: NewName): boolean {
  if (of === 'loop' || of === 'nest')
    return loopsOf(kernel.body).some((l) => (of === 'loop' ? l.name : l.nest) === name)
  return names.follow(kernel, consumed).has(name)
}

/** True for the loop nests of a group in the model. */
const isNestOf = (s: Stmt, { names }: NestGroup): boolean => s.kind === 'for' && names.has(s.var)

/** The state after the known steps on the loop nests of a group. */
export function repeatSteps(
  state: ScheduleState,
  { names, nests }: NestGroup,
  known: KnownSteps,
): ScheduleState {
  const { kernel } = state
  const index = state.names.follow(kernel, state.consumed)
  const all = new Map(names)
  const fill = (text: string): string =>
    all.get(text) ?? (text.includes('__') ? text.replace(PLACEHOLDER, (p) => all.get(p)!) : text)
  const taken = new Set<string>()
  const loops = new Set<string>()
  const isTaken = (name: string): boolean => index.has(name) || taken.has(name)
  const isLoop = (name: string): boolean => index.hasLoop(name) || loops.has(name)
  const isNest = (name: string): boolean => loopsOf(kernel.body).some((l) => l.nest === name)
  const isReserved = {
    definition: isTaken,
    nest: (name: string) => isTaken(name) || isNest(name),
    loop: isLoop,
    buffer: (name: string) => isTaken(name) || isLoop(name),
  }
  for (const { names: made, unused } of known.steps) {
    for (const { placeholder, of, base } of made) {
      const text = base(fill)
      const name = unusedName(text, isReserved[of], of === 'definition' ? index.freeNumber(text) : undefined)
      all.set(placeholder, name)
      if (of === 'loop') loops.add(name)
      else taken.add(name)
    }
    for (const { placeholder, of } of unused) (of === 'loop' ? loops : taken).delete(all.get(placeholder)!)
  }
  const first = state.coordSteps + state.steps
  const gone = renamed(known.consumed, fill).map((c) => ({ ...c, step: first + c.step }))
  const removed = known.removed.map(fill)
  const added = renamed(known.added, fill)
  const isSame = added.length + removed.length === 0
  const buffers = isSame
    ? kernel.buffers
    : [...kernel.buffers.filter((b) => !removed.includes(b.name)), ...added]
  const repeated = renamed(known.nests, fill)
  const body = kernel.body.flatMap((s) => (s === nests[0] ? repeated : nests.includes(s as For) ? [] : [s]))
  return applyKnown(
    state,
    known.steps.map(({ step }) => renamed(step, fill)),
    {
      kernel: Object.freeze({ ...kernel, buffers, body: Object.freeze(body) }),
      consumed: gone.length > 0 ? Object.freeze([...state.consumed, ...gone]) : state.consumed,
    },
  )
}
