/** Studies and trials at random, with numbers that come back exactly. */
import fc from 'fast-check'
import { studyId } from '../../src/search/records/identity.ts'
import type { Study, StudyData, StudyKey, TrialRecord } from '../../src/search/records/types.ts'
import type { Outcome } from '../../src/search/types.ts'

/** Whatever a message or a name may hold, but NUL, instead of which something else comes back. */
const text = fc.string({ unit: 'binary', maxLength: 12 }).map((s) => s.replaceAll('\0', '?'))
const ms = fc.double({ min: 0, max: 1e6, noNaN: true }).map((x) => x + 0)

const anyOutcome: fc.Arbitrary<Outcome> = fc.oneof(
  fc.record({ status: fc.constantFrom('rejected' as const, 'failed' as const), code: text, message: text }),
  fc.record({ status: fc.constant('wrong' as const), message: text }),
  fc.record({ status: fc.constant('bounded' as const), atMost: ms }),
  fc.array(ms, { minLength: 1, maxLength: 6 }).map((samples) => {
    const sorted = [...samples].sort((a, b) => a - b)
    const median = sorted[sorted.length >> 1]!
    return {
      status: 'measured' as const,
      timing: {
        median,
        interval: sorted.length > 1 ? ([sorted[0]!, sorted.at(-1)!] as const) : null,
        samples,
      },
    }
  }),
)

/** Few, so that some come twice. */
const anyPoint = fc.record({
  format: fc.constantFrom('csr', 'ell(2)', 'it, "quoted"\n'),
  lanes: fc.constantFrom(1, 2, 4, 8),
})

const anyKey: fc.Arbitrary<StudyKey> = fc.record({
  kernel: fc.constantFrom('k1', 'k2'),
  space: text,
  device: fc.record({
    kind: fc.constantFrom('cpu' as const, 'cuda' as const),
    name: fc.constantFrom('A', 'B'),
    driver: text,
  }),
  compiler: fc.constantFrom('1', '2'),
  fingerprint: fc.constantFrom('f', 'g'),
  sizes: fc.dictionary(fc.constantFrom('m', 'n', 'd'), fc.nat()),
})

const anyData: fc.Arbitrary<StudyData> = fc.record({
  name: text,
  tensors: fc.array(
    fc.record({
      name: fc.constantFrom('A', 'B'),
      shape: fc.array(fc.nat(), { maxLength: 3 }),
      dtype: fc.constant('f32' as const),
      stored: fc.option(fc.nat()),
    }),
    { maxLength: 2 },
  ),
})

export const anyStudy: fc.Arbitrary<Study> = fc
  .tuple(anyKey, fc.record({ strategy: text, seed: fc.nat(), data: anyData }, { requiredKeys: [] }), fc.nat())
  .map(([key, own, created]) => ({
    ...key,
    ...own,
    id: studyId(key),
    kernelName: `name of ${key.kernel}`,
    created,
  }))

const trace = fc
  .array(fc.constantFrom('A', 'B'), { maxLength: 2 })
  .map((buffers) => buffers.map((buffer) => ({ kind: 'as' as const, buffer, format: 'csr', args: [] })))

export const anyTrial = (studies: readonly Study[]): fc.Arbitrary<TrialRecord & { readonly time: number }> =>
  fc
    .record({
      study: fc.constantFrom(...studies.map((s) => s.id)),
      point: anyPoint,
      outcome: anyOutcome,
      time: fc.nat({ max: 1000 }),
      more: fc.record(
        {
          trace,
          steps: fc.array(text, { maxLength: 2 }),
          bytes: fc.nat(),
          relativeError: ms,
          sampled: fc.boolean(),
          share: fc.constantFrom(0.25, 0.5, 1),
          predicted: ms,
          terms: fc.dictionary(fc.constantFrom('a', 'b'), ms),
          duration: ms,
          worker: text,
        },
        { requiredKeys: [] },
      ),
    })
    .map(({ more, ...t }) => ({ ...t, ...more }))

export const studiesAndTrials = fc
  .array(anyStudy, { minLength: 1, maxLength: 3 })
  .chain((studies) => fc.tuple(fc.constant(studies), fc.array(anyTrial(studies), { maxLength: 25 })))
