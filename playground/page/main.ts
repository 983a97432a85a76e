/** The page: checks the text after an edit, and shows the selected view. The compiler works in a worker (worker/worker.ts). */
import { DEVICES, type DeviceChoice } from '../protocol.ts'
import { Superseded } from './client.ts'
import { byId, element, fillSelect } from './dom.ts'
import { createEditor } from './editor.ts'
import { fillExampleMenu } from './example-menu.ts'
import { acceptFiles, showMatrix, showValues } from './inputs.ts'
import { showProblems, showStatus } from './problems.ts'
import { type PageState, VIEWS, type View } from './share.ts'
import { openShareDialog } from './share-dialog.ts'
import { client, messageOf, notice, store } from './store.ts'
import { showVariants } from './variants.ts'
import { interruptRun, markChanged, markStale, running, showInstead, showRun, showView } from './views.ts'

/** Milliseconds from an edit to its check. */
const CHECK_MS = 150
const LABELS: Readonly<Record<View, string>> = {
  result: 'Result',
  picture: 'Matrix',
  loops: 'Loops',
  js: 'JavaScript',
  wgsl: 'WGSL',
  cuda: 'CUDA',
}
const DEVICE_LABELS: Readonly<Record<DeviceChoice, string>> = { webgpu: 'WebGPU', cpu: 'CPU' }

store.restore(location.hash)
/** The first schedules are checked after the first run. */
let isFirst = true
/** False until the program has run: it runs once without a click, and later when a control changes. */
let hasRun = false

const editor = createEditor(byId('editor'), {
  doc: store.state.text,
  changed: () => {
    store.set({ text: editor.view.state.doc.toString() })
    markChanged()
    checkSoon()
  },
  run: () => run(),
  known: () => ({ formats: store.checked?.formats ?? [], names: store.kernel?.names ?? [] }),
})
showStatus('Loading the compiler…')
performance.mark('editor')

let checkTimer = 0
function checkSoon(delay = CHECK_MS): void {
  clearTimeout(checkTimer)
  checkTimer = window.setTimeout(() => void check(), delay)
}

async function check(): Promise<void> {
  interruptRun()
  const { text } = store.state
  const start = performance.now()
  try {
    const result = await client.latest<'check'>('check', { kind: 'check', text })
    if (text !== store.state.text) return
    // With errors, the page keeps what the latest correct text gave.
    if (result.kernels === null) {
      showProblems(result, editor, performance.now() - start)
      if (!store.checked) showInstead('The text has errors.')
      else if (store.state.view !== 'result') markStale('Of the latest text without errors')
      return
    }
    store.checked = result
    store.checkedText = text
    performance.mark('checked')
    const checkMs = performance.now() - start
    showAll()
    const stepsStart = performance.now()
    const problems = await client.latest<'steps'>('steps', { kind: 'steps', text })
    if (text === store.state.text)
      showProblems(problems, editor, checkMs + (isFirst ? 0 : performance.now() - stepsStart))
    isFirst = false
  } catch (e) {
    if (!(e instanceof Superseded)) showStatus(`The text could not be checked: ${messageOf(e)}`, true)
  }
}

/** Changes the state and shows what follows from it. */
function change(patch: Partial<PageState>): void {
  interruptRun()
  store.set(patch)
  hasRun = false
  showAll()
}

function showAll(): void {
  const { state, kernel, checked } = store
  const names = (checked?.kernels ?? []).map((k) => ({ value: k.name, label: k.name }))
  fillSelect(byId<HTMLSelectElement>('kernel'), names, kernel?.name ?? state.kernel)
  showMatrix(state.matrix, kernel, client)
  showValues(state.values, kernel, (values) => change({ values }))
  showVariants(
    state.variants,
    kernel,
    { formats: checked?.formats ?? [], own: state.text },
    { changed: (variants) => change({ variants }) },
  )
  showTabs()
  showRunButton()
  if (!kernel) {
    if (checked) showInstead('The text declares no kernel: kernel NAME(n: size) { … }')
  } else if (state.view !== 'result') void showView()
  else if (!hasRun) startRun(false)
  else markChanged()
}

function showTabs(): void {
  const bar = byId('views')
  const hadFocus = bar.contains(document.activeElement)
  const select = (view: View): void => {
    change({ view })
    byId(`view-${view}`).focus()
  }
  bar.replaceChildren(
    ...VIEWS.map((view, k) =>
      element('button', {
        type: 'button',
        id: `view-${view}`,
        textContent: LABELS[view],
        tabIndex: view === store.state.view ? 0 : -1,
        aria: { role: 'tab', selected: String(view === store.state.view), controls: 'panels' },
        onclick: () => select(view),
        onkeydown: ({ key }) => {
          const by = { ArrowRight: 1, ArrowLeft: -1 }[key]
          if (by !== undefined) select(VIEWS[(k + by + VIEWS.length) % VIEWS.length]!)
        },
      }),
    ),
  )
  byId('panels').setAttribute('aria-labelledby', `view-${store.state.view}`)
  if (hadFocus) byId(`view-${store.state.view}`).focus()
}

function showRunButton(): void {
  const devices = DEVICES.map((value) => ({ value, label: DEVICE_LABELS[value] }))
  fillSelect(byId<HTMLSelectElement>('device'), devices, store.device)
  const button = byId<HTMLButtonElement>('run')
  button.textContent = running() ? 'Stop' : 'Run'
  button.disabled = !store.kernel && !running()
}

function run(): void {
  if (store.state.view !== 'result') {
    change({ view: 'result' })
    return
  }
  startRun(true)
}

/** `again`: also if nothing has changed since the latest run. */
function startRun(again: boolean): void {
  hasRun = true
  void showRun(showRunButton, { again })
}

const onChange = (id: string, act: (value: string) => void): void =>
  byId<HTMLSelectElement>(id).addEventListener('change', () => act(byId<HTMLSelectElement>(id).value))
onChange('kernel', (kernel) => change({ kernel, variants: [{ format: '', schedule: '' }] }))
onChange('matrix', (name) => change({ matrix: { name } }))
onChange('device', (device) => change({ device: device as DeviceChoice }))
byId('run').addEventListener('click', () => {
  if (running()) client.stop()
  else run()
})
byId('share').addEventListener('click', () => openShareDialog(store.save(), store.state.matrix.name))
acceptFiles((matrix) => change({ matrix }), notice)
fillExampleMenu((text) => {
  hasRun = false
  // Undo brings the earlier text back.
  editor.replace(text)
  checkSoon(0)
})
window.addEventListener('keydown', (e) => {
  if ((e.ctrlKey || e.metaKey) && e.key === 'Enter' && !e.defaultPrevented) run()
})
window.addEventListener('hashchange', ({ newURL }) => {
  const { text } = store.state
  // Not the present address, which a pending change may have replaced.
  if (!store.restore(new URL(newURL).hash)) return
  hasRun = false
  if (store.state.text !== text) editor.replace(store.state.text)
  else showAll()
})

/** The editor is painted before the compiler is loaded. */
async function start(): Promise<void> {
  void check()
  try {
    const { webgpu, software } = await client.request<'devices'>({ kind: 'devices' })
    store.usual = webgpu !== null && !software ? 'webgpu' : 'cpu'
    showRunButton()
  } catch (e) {
    showStatus(messageOf(e), true)
  }
}
showTabs()
showRunButton()
requestAnimationFrame(() => setTimeout(() => void start()))
