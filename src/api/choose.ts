/** From a choice and what is bound to the schedule: the kernel under it. */

import { brokenFact, factText } from '../analysis/integers/facts.ts'
import { fail, SptError } from '../ast/diagnostic.ts'
import type { Branch, Choice } from '../elaborate/index.ts'
import type { Compilation } from '../run/compile.ts'
import type { Resident } from '../storage/engines/device/index.ts'
import { expectArgument, isRecord } from './argument-checks.ts'
import { type RunInputs, valuesIn } from './bound-inputs.ts'
import { type ChoiceUse, type Chosen, type Decision, decide, type Lookup } from './choice-conditions.ts'
import { type ChosenFor, checkDeviceFacts, type DeviceFacts, deviceAnswer, kindOf } from './choose-device.ts'
import { checkResident } from './resident-check.ts'
import { isDeclared, Statistics } from './statistics.ts'

export type { ChosenFor } from './choose-device.ts'

/** What a schedule is chosen by. */
export interface ChoiceInputs extends RunInputs, DeviceFacts {
  /**
   * Tensors that a device has: their shapes count, and the structure of those that are arrays over the kernel's axes,
   * of which the offsets that are asked for are downloaded once.
   */
  readonly resident?: Readonly<Record<string, Resident>>
}

/** What schedules are applied to, giving a `K` (of `Kernel`, a `Kernel`). */
export interface Schedulable<K> {
  readonly compilation: Compilation
  schedule(name: string, ...args: (number | undefined)[]): K
}

/** A choice, and the kernel that its schedules are applied to. */
export interface OpenChoice<K extends Schedulable<K>> extends ChoiceUse {
  readonly base: K
}

/** A kernel under the schedule that was chosen. */
export interface ChosenKernel<K> {
  readonly kernel: K
  readonly chosen: Chosen
}

/** What is asked of data and device, and by what. */
export type Asking = Pick<Choice, 'kernel' | 'name' | 'statistics' | 'device'>

/** Some inputs: what they are, and what is known of them. */
export interface Facts {
  readonly statistics: Statistics
  readonly facts: DeviceFacts
  /** To be bound: bare values of declared tensors have their shapes. */
  readonly inputs: RunInputs
}

/** A question about some inputs. */
export interface Question<K extends Schedulable<K>> extends Facts {
  readonly open: OpenChoice<K>
}

export const question = <K extends Schedulable<K>>(
  open: OpenChoice<K>,
  given: ChoiceInputs,
): Question<K> => ({ open, ...factsFor(open.choice, open.base.compilation.source, given) })

/** @throws SptError `api/argument`, `choose/unknown-name`, `choose/unknown-feature` */
export function factsFor(asking: Asking, source: Compilation['source'], given: ChoiceInputs): Facts {
  expectArgument(isRecord(given), 'what is bound', given, '{ tensors, params, seed, statistics }')
  const { resident = {}, statistics = {}, capability, processors, features, ...inputs } = given
  const { tensors = {} } = inputs
  expectArgument(isRecord(tensors), 'tensors', tensors, 'tensors or values by name')
  expectArgument(isRecord(resident), 'resident', resident, 'resident tensors by name')
  for (const [name, t] of Object.entries(resident)) checkResident(t, `what is resident as ${name}`)
  const facts = { capability, processors, features }
  checkDeviceFacts(facts, asking.device.values())
  // Formats have lists, sets and parts beside, which the schedule's own kernel checks.
  const declared = <T>(list: Readonly<Record<string, T>>): Record<string, T> =>
    Object.fromEntries(Object.entries(list).filter(([name]) => isDeclared(source, name)))
  const values = valuesIn(source, { ...inputs, tensors: declared(tensors) })
  return {
    facts,
    inputs: { ...inputs, tensors: { ...tensors, ...values.tensors } },
    statistics: new Statistics(source, {
      ...values,
      resident: declared(resident),
      statistics: checkedStatistics(asking, statistics),
    }),
  }
}

/** The values of what was asked. @throws SptError `choose/unknown-…`, where one is not known */
export const lookupOf =
  (asking: Asking, { statistics, facts }: Facts, on: ChosenFor): Lookup =>
  (variable) => {
    const question = asking.device.get(variable.name)
    if (question) return deviceAnswer(on, facts, question, variable)
    const statistic = asking.statistics.get(variable.name)
    return statistic ? statistics.of(statistic, variable) : statistics.size(variable)
  }

/** @throws SptError `choose/unknown-name` */
function checkedStatistics(
  { kernel, name: own, statistics }: Asking,
  given: Readonly<Record<string, number>>,
): ReadonlyMap<string, number> {
  expectArgument(isRecord(given), 'statistics', given, "numbers by name: { 'longest(j)': 700 }")
  const candidates = [...statistics.keys()]
  for (const [name, value] of Object.entries(given)) {
    expectArgument(
      typeof value === 'number' && value >= 0,
      `the value of ${name}`,
      value,
      'a number that is not negative',
    )
    if (!statistics.has(name))
      fail({
        code: 'choose/unknown-name',
        message: `${kernel}.${own} does not depend on ${name}`,
        lookup: { name, candidates },
        expected: candidates.join(', ') || 'no statistics',
      })
  }
  return new Map(Object.entries(given))
}

/**
 * The schedule for a kind of device; `make` gives the kernel under it.
 * @throws SptError `choose/…`, `bind/…` of what statistics are taken from, `schedule/…` where a step is not legal
 */
export function answer<K extends Schedulable<K>>(
  asked: Question<K>,
  on: ChosenFor,
  make: (d: Decision) => K = (d) => applied(asked.open, d),
): ChosenKernel<K> {
  const { open, statistics } = asked
  kindOf(on)
  const decision = decide(open, lookupOf(open.choice, asked, on))
  const kernel = make(decision)
  checkRequirements(open, decision, kernel.compilation, statistics.sizes)
  return { kernel, chosen: decision.chosen }
}

/** The base under the schedule of a branch. */
export const applied = <K extends Schedulable<K>>({ base }: OpenChoice<K>, { branch, chosen }: Decision): K =>
  chosenHere(branch, () => base.schedule(branch.schedule.name, ...chosen.args))

/** What goes wrong with a schedule tells where it was chosen. */
export function chosenHere<T>({ span }: Branch, work: () => T): T {
  try {
    return work()
  } catch (e) {
    throw withPlace(e, span)
  }
}

export function withPlace(e: unknown, span: Branch['span']): unknown {
  if (!(e instanceof SptError)) return e
  const labelled = new SptError(
    e.diagnostics.map((d) =>
      d.span ? { ...d, labels: [...(d.labels ?? []), { span, text: 'chosen here' }] } : { ...d, span },
    ),
  )
  labelled.sources = e.sources
  return labelled
}

/** @throws SptError `choose/requirement` */
function checkRequirements(
  { choice, text }: ChoiceUse,
  { branch, chosen }: Decision,
  compilation: Compilation,
  sizes: ReadonlyMap<string, number>,
): void {
  const broken = brokenFact(compilation.loops.facts, sizes)
  if (!broken) return
  fail({
    code: 'choose/requirement',
    message: `${choice.kernel}.${text} chooses ${chosen.text}, which requires ${factText(broken)}, and ${broken.size} is ${sizes.get(broken.size)}`,
    span: branch.span,
    ...(broken.span ? { labels: [{ span: broken.span, text: 'required here' }] } : {}),
    expected: 'a condition that only holds for sizes that the schedule is for',
    hint: `when (${[...branch.conditions.map((c) => c.text), factText(broken)].join(' and ')})`,
  })
}
