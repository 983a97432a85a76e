/** The menu of programs to start from. */
import examples from 'playground:examples'
import { byId, fillSelect } from './dom.ts'
import { VIEWS } from './share.ts'
import { initial, messageOf, notice, store } from './store.ts'

/** `selected`: called with the text of a program, for which the state is already set. */
export function fillExampleMenu(selected: (text: string) => void): void {
  const select = byId<HTMLSelectElement>('example')
  fillSelect(
    select,
    [
      { value: '', label: 'choose…' },
      ...examples.map((e) => ({ value: e.id, label: e.title, group: e.group })),
    ],
    '',
  )
  select.addEventListener('change', async () => {
    const example = examples.find((e) => e.id === select.value)
    select.value = ''
    if (!example) return
    try {
      const text = example.text ?? (await packageText(example.id))
      const { device, matrix, view } = store.state
      store.set({
        ...initial(),
        text,
        device,
        view: VIEWS.find((v) => v === example.preset.view) ?? view,
        matrix: example.preset.matrix === undefined ? matrix : { name: example.preset.matrix },
      })
      selected(text)
    } catch (e) {
      notice(`The example could not be loaded: ${messageOf(e)}`)
    }
  })
}

/** A kernel of the package, with imports as a user's file has them. */
async function packageText(path: string): Promise<string> {
  const response = await fetch(new URL(`package/${path}`, document.baseURI))
  if (!response.ok) throw new Error(`${response.status} ${response.statusText}`)
  return (await response.text()).replace(/"\.\//g, '"sparsetile/kernels/').replace(/"\.\.\//g, '"sparsetile/')
}
