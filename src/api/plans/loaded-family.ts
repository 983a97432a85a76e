/** Families of plans from JSON: the conditions select one of the compiled plans for each binding. */
import { failWith } from '../../ast/diagnostics/diagnostic.ts'
import type { Statistic } from '../../elaborate/index.ts'
import { variable } from '../../ir/expressions/expr.ts'
import { evaluateSize } from '../../ir/expressions/size-expressions.ts'
import { type LoadableFamily, namesOfSize } from '../../plan/family-codec.ts'
import { bindPlan } from '../../run/bind/bind-plan.ts'
import { type Candidate, candidateOf } from '../built/candidates.ts'
import type { CompiledCode } from '../built/code.ts'
import type { SelectionInputs } from '../dispatch/device-facts.ts'
import { Facts } from '../dispatch/facts.ts'
import { type DeclaredInputs, formatInputsFor } from '../inputs/format-input-binding.ts'

export class LoadedFamily {
  readonly family: LoadableFamily
  readonly codes: readonly CompiledCode[]
  /** Lists and sets that formats of the plans take. */
  readonly #used: DeclaredInputs

  constructor(family: LoadableFamily, codes: readonly CompiledCode[]) {
    this.family = family
    this.codes = codes
    const operands = codes.flatMap(({ program }) => [...bindPlan(program.plan.binding).operands])
    this.#used = new Map(operands.map(([name, { kind }]) => [name, { kind, tensor: null }]))
  }

  /** The plan for some inputs. Throws SptError `choose/…`, `bind/…` for data of statistics. */
  candidate(inputs: SelectionInputs): Candidate {
    const { kernel, schedule: dispatch, branches } = this.family
    const statistics = new Map(
      [...this.family.statistics].map(([name, { kind, of }]): [string, Statistic] => [
        name,
        kind === 'nnz' ? { kind, tensor: of } : { kind, axis: of },
      ]),
    )
    const queried = { kernel: kernel.name, name: dispatch, statistics, device: new Map() }
    const facts = new Facts(queried, kernel, this.codes[0]!.device, inputs, this.#used)
    const look = facts.lookup()
    const values = new Map<string, number>()
    const index = branches.findIndex(({ when }) =>
      when.every((e) => {
        for (const name of namesOfSize(e)) if (!values.has(name)) values.set(name, look(variable(name)))
        return evaluateSize(e, values)! > 0
      }),
    )
    if (index < 0)
      return failWith('choose/no-match', `${kernel.name}.${dispatch} has no plan for these data`, {
        expected: 'a condition that holds',
        hint: 'end the dispatch with `otherwise schedule`, and write the family again',
      })
    const { schedule, when, plan } = branches[index]!
    const code = this.codes[plan]!
    const { tensors = {}, ...own } = facts.inputs
    const taken = formatInputsFor(code.program.plan.binding, tensors, this.#used)
    const unknown = { declaredBy: null, origin: null, predictions: [], costModel: null }
    return {
      ...candidateOf(code, { ...own, tensors: taken }, schedule),
      selection: {
        ...unknown,
        dispatch,
        schedule,
        args: [],
        text: schedule,
        reason: when.length > 0 ? when.map((e) => JSON.stringify(e)).join(' and ') : 'otherwise',
        values: Object.fromEntries(values),
        span: { source: '', start: 0, end: 0 },
        rejectedBranches: branches.slice(0, index).map((b) => `${b.schedule}: its conditions do not hold`),
      },
    }
  }
}
