/** Inputs of a case, read when it is their turn. */
import type { RunInputs } from '../../api/bound-inputs.ts'
import { fail, SptError } from '../../ast/diagnostic.ts'
import { isRecord, show } from '../../ast/expect-argument.ts'
import { Ending, type Limits } from '../ending.ts'

/** Inputs as for `prepare`, or a function that reads them: large ones are read on demand. */
export type CaseInputs = RunInputs | (() => RunInputs | Promise<RunInputs>)

/** Seconds that reading may take beyond those of a search. */
export const READING = 30

/**
 * @param limits `seconds` after which they count as not coming
 * @throws SptError `search/inputs` where they throw, do not come or are none; what is an `SptError` already, and the reason
 * of the signal, as they are
 */
export async function inputsOf(
  { name, inputs }: { readonly name: string; readonly inputs: CaseInputs },
  { signal, seconds }: Pick<Limits, 'signal' | 'seconds'>,
): Promise<RunInputs> {
  if (typeof inputs !== 'function') return inputs
  const ending = new Ending({ signal, seconds, grace: 0 })
  try {
    const read = await ending.unlessAborted(async () => inputs())
    signal?.throwIfAborted()
    if (isRecord(read)) return read
    return refuse(name, ending.signal.aborted ? `do not come in ${seconds} s` : `are ${show(read)}`)
  } catch (e) {
    if (e instanceof SptError || signal?.aborted) throw e
    return refuse(name, `cannot be read: ${e instanceof Error ? e.message : show(e)}`)
  } finally {
    ending.clear()
  }
}

const refuse = (name: string, fault: string): never =>
  fail({
    code: 'search/inputs',
    message: `the inputs of case ${name} ${fault}`,
    expected: 'a function that gives { tensors, params, … }, as prepare takes them',
  })
