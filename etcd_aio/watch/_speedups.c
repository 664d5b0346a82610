/* Single events of a watch without a coroutine for each, and the check of their keys.

   `EventSource` is the base class of `Watcher`. It has the batch of events that are iterated over singly. Its
   `__anext__` returns a step, which is awaited like a coroutine: it returns the next event of the batch at once, or has
   the coroutine of `_next_event` do the rest, if the batch is over. As with a coroutine, nothing is taken before the
   step is awaited, and a step is awaited once.

   `count_inside` counts the events at the head of a batch whose keys are in the range of the watch. */

#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030b0000
#include <Python.h>
#include <stddef.h>
#include <string.h>
#include <structmember.h>

typedef struct {
    PyTypeObject *step, *source;
    PyObject *next_event; /* the name of the method */
    PyTypeObject *event, *key_value;
    PyObject *kv_slot, *key_slot;
    descrgetfunc get; /* of both slots' descriptors */
} State;

/* `state` belongs to the module, which the class keeps alive. */
typedef struct {
    PyObject_HEAD
    PyObject *batch;
    Py_ssize_t at;
    const State *state;
} Source;

/* Before it begins it has a source; while it waits for a batch, the coroutine; neither after its end. */
typedef struct {
    PyObject_HEAD
    Source *source;
    PyObject *coroutine;
    int is_running; /* the coroutine is, somewhere below on the stack or in another thread */
} Step;

/* --- Steps ---

   What a step refuses, and how, is the same as for a coroutine. */

static int
refuse_reentry(const Step *self)
{
    if (self->is_running)
        PyErr_SetString(PyExc_ValueError, "coroutine already executing");
    return self->is_running;
}

/* Makes the coroutine that does the step. Returns whether it failed. */
static int
begin(Step *self)
{
    Source *source = self->source;
    if (source == NULL) {
        PyErr_SetString(PyExc_RuntimeError, "cannot reuse already awaited coroutine");
        return -1;
    }
    self->source = NULL;
    self->coroutine = PyObject_CallMethodObjArgs((PyObject *)source, source->state->next_event, NULL);
    Py_DECREF(source);
    return self->coroutine == NULL ? -1 : 0;
}

static PySendResult
step_send(PyObject *object, PyObject *value, PyObject **result)
{
    Step *self = (Step *)object;
    *result = NULL;
    if (refuse_reentry(self))
        return PYGEN_ERROR;
    if (self->coroutine == NULL) {
        Source *source = self->source;
        if (source != NULL && value != Py_None) {
            PyErr_SetString(PyExc_TypeError, "can't send non-None value to a just-started coroutine");
            return PYGEN_ERROR;
        }
        if (source != NULL && source->batch != NULL && PyTuple_Check(source->batch) && source->at >= 0 &&
            source->at < PyTuple_Size(source->batch)) {
            *result = Py_NewRef(PyTuple_GetItem(source->batch, source->at++));
            self->source = NULL;
            Py_DECREF(source);
            return PYGEN_RETURN;
        }
        if (begin(self) < 0)
            return PYGEN_ERROR;
    }
    self->is_running = 1;
    PySendResult status = PyIter_Send(self->coroutine, value, result);
    self->is_running = 0;
    if (status != PYGEN_NEXT)
        Py_CLEAR(self->coroutine);
    return status;
}

/* What a method of a generator returns: the value that it yielded, or StopIteration with the one that it returned. */
static PyObject *
step_outcome(PyObject *self, PyObject *value)
{
    PyObject *result;
    if (step_send(self, value, &result) != PYGEN_RETURN)
        return result;
    PyObject *stop = PyObject_CallFunctionObjArgs(PyExc_StopIteration, result, NULL);
    Py_DECREF(result);
    if (stop != NULL) {
        PyErr_SetObject(PyExc_StopIteration, stop);
        Py_DECREF(stop);
    }
    return NULL;
}

static PyObject *
step_next(PyObject *self)
{
    return step_outcome(self, Py_None);
}

/* Forgets the coroutine, unless it goes on: what was to be thrown may be no exception. Keeps the one that is set. */
static void
forget_if_over(Step *self)
{
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    PyObject *frame = PyObject_GetAttrString(self->coroutine, "cr_frame");
    if (frame == NULL || frame == Py_None)
        Py_CLEAR(self->coroutine);
    Py_XDECREF(frame);
    PyErr_Clear();
    PyErr_Restore(type, value, traceback);
}

static PyObject *
step_throw(PyObject *object, PyObject *arguments)
{
    Step *self = (Step *)object;
    if (refuse_reentry(self) || (self->coroutine == NULL && begin(self) < 0))
        return NULL;
    PyObject *throw = PyObject_GetAttrString(self->coroutine, "throw"), *result = NULL;
    if (throw != NULL) {
        self->is_running = 1;
        result = PyObject_Call(throw, arguments, NULL);
        self->is_running = 0;
        Py_DECREF(throw);
    }
    if (result == NULL)
        forget_if_over(self);
    return result;
}

static PyObject *
step_close(PyObject *object, PyObject *unused)
{
    Step *self = (Step *)object;
    if (refuse_reentry(self))
        return NULL;
    Py_CLEAR(self->source);
    if (self->coroutine == NULL)
        Py_RETURN_NONE;
    self->is_running = 1;
    PyObject *result = PyObject_CallMethod(self->coroutine, "close", NULL);
    self->is_running = 0;
    Py_CLEAR(self->coroutine);
    return result;
}

static PyObject *
step_await(PyObject *object)
{
    if (((Step *)object)->coroutine != NULL) {
        PyErr_SetString(PyExc_RuntimeError, "coroutine is being awaited already");
        return NULL;
    }
    return Py_NewRef(object);
}

static PyObject *
step_name(PyObject *object, void *unused)
{
    return PyUnicode_FromString("Watcher.__anext__");
}

static int
step_traverse(PyObject *object, visitproc visit, void *arg)
{
    Step *self = (Step *)object;
    Py_VISIT(Py_TYPE(object));
    Py_VISIT(self->source);
    Py_VISIT(self->coroutine);
    return 0;
}

static int
step_clear(PyObject *object)
{
    Step *self = (Step *)object;
    Py_CLEAR(self->source);
    Py_CLEAR(self->coroutine);
    return 0;
}

static void
step_deallocate(PyObject *object)
{
    PyTypeObject *type = Py_TYPE(object);
    PyObject_GC_UnTrack(object);
    step_clear(object);
    PyObject_GC_Del(object);
    Py_DECREF(type);
}

static PyMethodDef step_methods[] = {
    {"send", step_outcome, METH_O, NULL},
    {"throw", step_throw, METH_VARARGS, NULL},
    {"close", step_close, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};
static PyGetSetDef step_attributes[] = {
    {"__name__", step_name, NULL, NULL, NULL},
    {"__qualname__", step_name, NULL, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};
/* Without `tp_iter`: a coroutine is no iterable either. */
static PyType_Slot step_slots[] = {
    {Py_am_await, step_await},
    {Py_am_send, step_send},
    {Py_tp_getset, step_attributes},
    {Py_tp_iternext, step_next},
    {Py_tp_methods, step_methods},
    {Py_tp_traverse, step_traverse},
    {Py_tp_clear, step_clear},
    {Py_tp_dealloc, step_deallocate},
    {0, NULL},
};
static PyType_Spec step_spec = {
    "etcd_aio.watch._speedups.Step",
    sizeof(Step),
    0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    step_slots,
};

/* --- The source --- */

/* The state of the module in which this class, or a base class, was made. */
static const State *
state_of(PyTypeObject *type)
{
    for (; type != NULL && PyType_GetFlags(type) & Py_TPFLAGS_HEAPTYPE; type = PyType_GetSlot(type, Py_tp_base)) {
        const State *state = PyType_GetModuleState(type);
        if (state != NULL)
            return state;
        PyErr_Clear(); /* a class made in Python */
    }
    PyErr_SetString(PyExc_TypeError, "not a class of this module");
    return NULL;
}

static PyObject *
source_new(PyTypeObject *type, PyObject *arguments, PyObject *keywords)
{
    const State *state = state_of(type);
    if (state == NULL)
        return NULL;
    if (type == state->source) { /* those of subclasses are deallocated without recursion */
        PyErr_SetString(PyExc_TypeError, "EventSource is a base class");
        return NULL;
    }
    Source *self = (Source *)PyType_GenericAlloc(type, 0);
    if (self == NULL)
        return NULL;
    self->state = state;
    self->batch = PyTuple_New(0);
    if (self->batch == NULL)
        Py_CLEAR(self);
    return (PyObject *)self;
}

static PyObject *
source_anext(PyObject *object)
{
    PyTypeObject *type = ((Source *)object)->state->step;
    if (type == NULL) {
        PyErr_SetString(PyExc_SystemError, "the module was cleared");
        return NULL;
    }
    Step *step = PyObject_GC_New(Step, type);
    if (step == NULL)
        return NULL;
    step->source = (Source *)Py_NewRef(object);
    step->coroutine = NULL;
    step->is_running = 0;
    PyObject_GC_Track((PyObject *)step);
    return (PyObject *)step;
}

static int
source_traverse(PyObject *object, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(object));
    Py_VISIT(((Source *)object)->batch);
    return 0;
}

static int
source_clear(PyObject *object)
{
    Py_CLEAR(((Source *)object)->batch);
    return 0;
}

static void
source_deallocate(PyObject *object)
{
    PyTypeObject *type = Py_TYPE(object);
    PyObject_GC_UnTrack(object);
    source_clear(object);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(object);
    Py_DECREF(type);
}

static PyMemberDef source_members[] = {
    {"_batch", T_OBJECT_EX, offsetof(Source, batch), 0, NULL},
    {"_at", T_PYSSIZET, offsetof(Source, at), 0, NULL},
    {NULL, 0, 0, 0, NULL},
};
static PyType_Slot source_slots[] = {
    {Py_tp_new, source_new},
    {Py_am_anext, source_anext},
    {Py_tp_members, source_members},
    {Py_tp_traverse, source_traverse},
    {Py_tp_clear, source_clear},
    {Py_tp_dealloc, source_deallocate},
    {0, NULL},
};
static PyType_Spec source_spec = {
    "etcd_aio.watch._speedups.EventSource",
    sizeof(Source),
    0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
    source_slots,
};

/* --- The check of the keys --- */

/* Compares bytes as Python does: less than, equal to or greater than 0. */
static int
compare(const char *one, Py_ssize_t one_size, const char *other, Py_ssize_t other_size)
{
    int order = memcmp(one, other, one_size < other_size ? one_size : other_size);
    return order != 0 ? order : (one_size > other_size) - (one_size < other_size);
}

/* count_inside(events, first, end) -> how many events at the head of the tuple have a key that is `first`, or in the
   range up to `end`, which is `b"\0"` for no end. */
static PyObject *
count_inside(PyObject *module, PyObject *arguments)
{
    const State *state = PyModule_GetState(module);
    PyObject *events;
    const char *first, *end;
    Py_ssize_t first_size, end_size, count = 0;
    if (!PyArg_ParseTuple(arguments, "O!y#y#", &PyTuple_Type, &events, &first, &first_size, &end, &end_size))
        return NULL;
    Py_ssize_t size = state->get == NULL ? 0 : PyTuple_Size(events);
    int is_endless = end_size == 1 && end[0] == 0;
    for (; count < size; count++) {
        PyObject *event = PyTuple_GetItem(events, count);
        if (!Py_IS_TYPE(event, state->event))
            break;
        PyObject *kv = state->get(state->kv_slot, event, (PyObject *)state->event), *key = NULL;
        if (kv != NULL && Py_IS_TYPE(kv, state->key_value))
            key = state->get(state->key_slot, kv, (PyObject *)state->key_value);
        int is_inside = 0;
        if (key != NULL && PyBytes_CheckExact(key)) {
            const char *text = PyBytes_AsString(key);
            Py_ssize_t length = PyBytes_Size(key);
            int order = compare(text, length, first, first_size);
            is_inside = order == 0 || (order > 0 && end_size > 0 &&
                                       (is_endless || compare(text, length, end, end_size) < 0));
        }
        PyErr_Clear(); /* of an empty slot: Python's check will tell */
        Py_XDECREF(kv);
        Py_XDECREF(key);
        if (!is_inside)
            break;
    }
    return PyLong_FromSsize_t(count);
}

/* set_classes(Event, KeyValue), once. */
static PyObject *
set_classes(PyObject *module, PyObject *arguments)
{
    State *state = PyModule_GetState(module);
    PyObject *event, *key_value;
    if (!PyArg_ParseTuple(arguments, "O!O!", &PyType_Type, &event, &PyType_Type, &key_value))
        return NULL;
    if (state->event != NULL) {
        PyErr_SetString(PyExc_ValueError, "the classes are set once");
        return NULL;
    }
    state->event = (PyTypeObject *)Py_NewRef(event);
    state->key_value = (PyTypeObject *)Py_NewRef(key_value);
    state->kv_slot = PyObject_GetAttrString(event, "kv");
    state->key_slot = PyObject_GetAttrString(key_value, "key");
    if (state->kv_slot == NULL || state->key_slot == NULL)
        return NULL;
    if (!Py_IS_TYPE(state->kv_slot, &PyMemberDescr_Type) || !Py_IS_TYPE(state->key_slot, &PyMemberDescr_Type)) {
        PyErr_SetString(PyExc_TypeError, "kv and key are not slots");
        return NULL;
    }
    state->get = (descrgetfunc)PyType_GetSlot(&PyMemberDescr_Type, Py_tp_descr_get);
    Py_RETURN_NONE;
}

/* --- The module --- */

static int
execute(PyObject *module)
{
    State *state = PyModule_GetState(module);
    state->next_event = PyUnicode_InternFromString("_next_event");
    state->step = (PyTypeObject *)PyType_FromModuleAndSpec(module, &step_spec, NULL);
    state->source = (PyTypeObject *)PyType_FromModuleAndSpec(module, &source_spec, NULL);
    int failed = state->next_event == NULL || state->step == NULL || state->source == NULL ||
                 PyModule_AddObjectRef(module, "EventSource", (PyObject *)state->source) < 0;
    return failed ? -1 : 0;
}

static int
traverse(PyObject *module, visitproc visit, void *arg)
{
    State *state = PyModule_GetState(module);
    Py_VISIT(state->step);
    Py_VISIT(state->source);
    Py_VISIT(state->event);
    Py_VISIT(state->key_value);
    Py_VISIT(state->kv_slot);
    Py_VISIT(state->key_slot);
    return 0;
}

static int
clear(PyObject *module)
{
    State *state = PyModule_GetState(module);
    state->get = NULL; /* no key is checked any more */
    Py_CLEAR(state->step);
    Py_CLEAR(state->source);
    Py_CLEAR(state->next_event);
    Py_CLEAR(state->event);
    Py_CLEAR(state->key_value);
    Py_CLEAR(state->kv_slot);
    Py_CLEAR(state->key_slot);
    return 0;
}

static void
deallocate(void *module)
{
    clear(module);
}

static PyMethodDef methods[] = {
    {"count_inside", count_inside, METH_VARARGS, NULL},
    {"set_classes", set_classes, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

/* Without Py_mod_multiple_interpreters: see `codec/_speedups.c`. */
static PyModuleDef_Slot slots[] = {{Py_mod_exec, execute}, {0, NULL}};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "etcd_aio.watch._speedups", NULL, sizeof(State), methods, slots, traverse, clear, deallocate,
};

PyMODINIT_FUNC
PyInit__speedups(void)
{
    return PyModuleDef_Init(&definition);
}
