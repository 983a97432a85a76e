/** Selection of a plan by the sizes and statistics of tensors: loaded for families of plans. */
import { SizeFacts } from '../../api/dispatch/facts.ts'
import { Statistics, statisticIn } from '../../api/dispatch/statistics.ts'
import { declaredOf, valuesIn } from '../../api/inputs/bound-inputs.ts'
import { type Inputs, namedInputs } from '../../api/inputs/flat-inputs.ts'
import { variable } from '../../ir/expressions/expr.ts'
import { readKernel } from '../../plan/binding-codecs.ts'
import { familyStatistics } from '../../plan/family-codec.ts'
import { valueIn } from '../../plan/interpret.ts'
import type { Plan, PlanFamily } from '../../plan/schema.ts'
import { selectPlan } from '../family.ts'
import { failWith } from '../plan-error.ts'

/** The selection of a family. Statistics in the inputs replace computed ones. @throws SptError `bind/…`, `choose/…` */
export function selectorOf(family: PlanFamily): (inputs: Inputs) => Plan {
  const { choose } = family
  const kernel = readKernel({ binding: choose.binding }, 'choose')
  const written = familyStatistics.read(choose.statistics, 'choose.statistics')
  const wanted = new Map([...written].map(([name, s]) => [name, statisticIn(s)]))
  return (inputs) => {
    const { tensors = {}, params = {} } = namedInputs('bind', inputs, {})
    const isStatistic = ([name]: readonly [string, unknown]): boolean => wanted.has(name)
    const statistics = new Map(Object.entries(params).filter(isStatistic) as [string, number][])
    const sizes = Object.fromEntries(Object.entries(params).filter((p) => !isStatistic(p)))
    const declared = declaredOf(kernel, tensors, new Set())
    const bound = {
      ...valuesIn(kernel, { tensors: declared, params: sizes }),
      by: `schedule ${choose.schedule}`,
      resident: {},
      statistics,
      beside: {},
    }
    const known = new SizeFacts(kernel, bound, () => undefined)
    const facts = new Statistics(kernel, bound, known, wanted)
    const values = new Map(known.sizes)
    for (const name of wanted.keys()) values.set(name, facts.value(variable(name, 'f64'))!)
    return selectPlan(family, values, { valueIn, failWith })
  }
}
