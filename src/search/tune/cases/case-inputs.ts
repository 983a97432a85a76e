/** Inputs of a case, read immediately before its search. */
import type { RunInputs } from '../../../api/inputs/bound-inputs.ts'
import { fail, SptError } from '../../../ast/diagnostics/diagnostic.ts'
import { isRecord, show } from '../../../ast/diagnostics/expect-argument.ts'
import { Ending, type Limits } from '../../loop/ending.ts'

/** Inputs as for `prepare`, or a function that reads them: large ones are read on demand. */
export type CaseInputs = RunInputs | (() => RunInputs | Promise<RunInputs>)

/** Seconds for reading inputs, in addition to the time limit of a search. */
export const READING_SECONDS = 30

/**
 * Reads the inputs of a case.
 * @param limits - `seconds` after which reading counts as failed
 * @throws SptError `search/inputs` if reading throws, takes too long or returns no inputs; any `SptError` of the
 * function; the abort reason of the signal
 */
export async function inputsOf(
  { name, inputs }: { readonly name: string; readonly inputs: CaseInputs },
  { signal, seconds }: Pick<Limits, 'signal' | 'seconds'>,
): Promise<RunInputs> {
  if (typeof inputs !== 'function') return inputs
  const ending = new Ending({ signal, seconds, graceSeconds: 0 })
  try {
    const result = await ending.unlessAborted(async () => inputs())
    signal?.throwIfAborted()
    if (isRecord(result)) return result
    return rejectInputs(name, ending.signal.aborted ? `do not come in ${seconds} s` : `are ${show(result)}`)
  } catch (e) {
    if (e instanceof SptError || signal?.aborted) throw e
    return rejectInputs(name, `cannot be read: ${e instanceof Error ? e.message : show(e)}`)
  } finally {
    ending.clear()
  }
}

const rejectInputs = (name: string, fault: string): never =>
  fail({
    code: 'search/inputs',
    message: `the inputs of case ${name} ${fault}`,
    expected: 'a function that gives { tensors, params, … }, as for prepare',
  })
