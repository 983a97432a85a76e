/** The selected view of all variants: requested from the compiler, and shown in a column each. */
import { type Request, type RunResult, TEXTS, type TextTarget } from '../protocol.ts'
import { Superseded } from './client.ts'
import { byId, element } from './dom.ts'
import { showCode, showError, showLoops, showNote, showPicture, showResult, timeOf } from './panels.ts'
import { client, messageOf, store } from './store.ts'

type RunRequest = Extract<Request, { readonly kind: 'run' }>

/** True while a run is in flight. */
let isRunning = false
/** Increases with each run: an earlier run that ends late changes nothing. */
let runs = 0

export const running = (): boolean => isRunning

/** Milliseconds after which a change ends a run, so that its check need not wait. Loading the compiler again takes a second. */
const PATIENCE_MS = 2000
let runStart = 0
/** Ends a long run of an earlier state. */
export function interruptRun(): void {
  if (isRunning && performance.now() - runStart > PATIENCE_MS) client.stop()
}

/** A column for each variant. Columns stay while the view does: a new result replaces the old one without a flash. */
function columns(): readonly HTMLElement[] {
  const parent = byId('panels')
  const { view, variants } = store.state
  const key = `${view} ${variants.length}`
  if (parent.dataset.key !== key) {
    parent.dataset.key = key
    parent.replaceChildren(
      ...variants.map((_, k) =>
        element('section', {
          className: 'panel',
          aria: { label: variants.length > 1 ? `Variant ${'AB'[k]}` : 'Output' },
        }),
      ),
    )
  }
  return [...parent.children] as HTMLElement[]
}

/** A text in the place of all columns. */
export function showInstead(text: string): void {
  const parent = byId('panels')
  parent.dataset.key = ''
  showNote(parent, text)
}

/** Marks what is shown as out of date, with the reason; `null`: it is up to date. */
export function markStale(note: string | null): void {
  for (const panel of byId('panels').querySelectorAll<HTMLElement>('.panel')) {
    if (note === null) delete panel.dataset.note
    else panel.dataset.note = note
  }
}

const CHANGED = 'The text has changed: press Run'
/** What is shown is of the text before the latest edit. Other views than the result follow the text by themselves. */
export function markChanged(): void {
  if (store.state.view === 'result' && !isRunning) markStale(CHANGED)
}

/** Shows a view other than the result. */
export async function showView(): Promise<void> {
  const { variants, view } = store.state
  const { problem } = store
  if (!problem) return
  const parents = columns()
  await Promise.all(
    variants.map(async (_, k) => {
      const parent = parents[k]!
      if (parent.childElementCount === 0) showNote(parent, 'Compiling…')
      try {
        const show = await viewOf(k)
        if (store.state.view === view && parent.isConnected) show(parent)
      } catch (e) {
        if (!(e instanceof Superseded) && store.state.view === view) showError(parent, messageOf(e))
      }
    }),
  )
  if (store.state.view === view && problem.text === store.state.text) markStale(null)
}

/** Requests the view of a variant, and returns a function that shows it. */
async function viewOf(k: number): Promise<(parent: HTMLElement) => void> {
  const { variants, view, steps } = store.state
  const lane = `view ${k}`
  const common = { problem: store.problem!, variant: variants[k]! }
  if (view === 'picture') {
    const picture = await client.latest<'picture'>(lane, { kind: 'picture', ...common })
    return (parent) => showPicture(parent, picture)
  }
  if (view === 'loops') {
    const loops = await client.latest<'loops'>(lane, { kind: 'loops', ...common, device: store.device })
    return (parent) =>
      showLoops(parent, loops, steps[k] ?? -1, (step) => {
        const known = store.state.steps
        if (known[k] !== step) store.set({ steps: known.map((s, n) => (n === k ? step : s)) })
      })
  }
  const target: TextTarget = TEXTS.find((t) => t === view)!
  const code = await client.latest<'code'>(lane, { kind: 'code', ...common, target })
  return (parent) => showCode(parent, code, target)
}

/** The results that were shown last, and what they are of. */
let latest: { readonly key: string; readonly results: readonly (RunResult | string)[] } | null = null

/**
 * Runs all variants, one after the other, and shows the results. `changed`: called when a run begins and ends; `again`:
 * also if nothing has changed since the latest run.
 */
export async function showRun(changed: () => void, { again }: { readonly again: boolean }): Promise<void> {
  const { problem, device } = store
  const { variants } = store.state
  if (!problem) return
  const { name, bytes } = problem.matrix
  const key = JSON.stringify([{ ...problem, matrix: [name, bytes?.length] }, variants, device])
  const run = ++runs
  const parents = columns()
  const setRunning = (is: boolean): void => {
    isRunning = is
    byId('panels').setAttribute('aria-busy', String(is))
    changed()
  }
  if (!again && latest?.key === key) {
    showResults(parents, latest.results)
    return
  }
  setRunning(true)
  runStart = performance.now()
  for (const p of parents) if (p.childElementCount === 0) showNote(p, 'Running…')
  markStale('Running…')
  try {
    const results = await Promise.all(variants.map((variant, k) => resultOf(k, { problem, variant, device })))
    if (run !== runs) return
    setRunning(false)
    latest = { key, results }
    if (store.state.view === 'result') showResults(parents, results)
    performance.mark('result')
  } catch (e) {
    if (!(e instanceof Superseded)) throw e
    if (run !== runs) return
    setRunning(false)
    if (store.state.view === 'result') for (const p of parents) showNote(p, 'Stopped.')
    markStale(null)
  }
}

/** The result of a variant, or the error as text. */
async function resultOf(k: number, of: Omit<RunRequest, 'kind'>): Promise<RunResult | string> {
  try {
    return await client.latest<'run'>(`run ${k}`, { kind: 'run', ...of })
  } catch (e) {
    if (e instanceof Superseded) throw e
    return messageOf(e)
  }
}

function showResults(parents: readonly HTMLElement[], results: readonly (RunResult | string)[]): void {
  const times = results.map((r) => (typeof r === 'string' ? null : timeOf(r)))
  const slowest = times.every((t) => t !== null) && times.length > 1 ? Math.max(...times) : null
  for (const [k, r] of results.entries()) {
    if (typeof r === 'string') showError(parents[k]!, r)
    else showResult(parents[k]!, r, slowest)
  }
  markStale(store.checkedText === store.state.text ? null : CHANGED)
}
