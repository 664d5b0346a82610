/* Reads runs of key-values and events that are laid out as etcd writes them.

   A reader appends the items that it can read to a list, and returns the position of the first that it cannot. The
   decoder in Python reads that one. So malformed bytes are never judged here, and only MemoryError is raised for data.

   An item is read if its fields come in ascending order, each at most once, and none is unknown.

   The objects are the public frozen dataclasses, filled through the descriptors of their slots. They hold bytes, ints,
   enum members and each other, so no reference cycle can contain them, and they are untracked: the cycle collector
   would take longer to traverse a hundred thousand of them again and again than it takes to read them. */

#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030b0000
#include <Python.h>
#include <stdint.h>

/* The order of the fields; `numbers` in `read_key_value` has the same. */
enum { KEY, CREATE_REVISION, MOD_REVISION, VERSION, VALUE, LEASE, KEY_VALUE_SLOTS };
enum { TYPE, KV, PREV_KV, EVENT_SLOTS };
static const char *const key_value_names[] = {"key", "create_revision", "mod_revision", "version", "value", "lease"};
static const char *const event_names[] = {"type", "kv", "prev_kv"};

/* The tags of the fields: the number, and whether a varint (0) or a length (2) follows. */
#define VARINT_FIELD(number) ((number) << 3)
#define LENGTH_FIELD(number) ((number) << 3 | 2)

typedef struct {
    PyTypeObject *key_value, *event;
    PyObject *key_value_slots[KEY_VALUE_SLOTS], *event_slots[EVENT_SLOTS];
    descrsetfunc set; /* of every slot's descriptor */
    PyObject *put, *delete;
} State;

typedef const unsigned char *Bytes;
typedef PyObject *(*ReadItem)(const State *, Bytes, Bytes);

/* Reads a varint. Returns the position after it; NULL if it does not end before `end`, or has more than 64 bits. */
static inline Bytes
read_varint(Bytes at, Bytes end, uint64_t *number)
{
    uint64_t read = 0;
    for (int shift = 0; shift < 64 && at < end; shift += 7) {
        unsigned char byte = *at++;
        if (shift == 63 && byte > 1)
            return NULL;
        read |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) {
            *number = read;
            return at;
        }
    }
    return NULL;
}

/* Reads the length of a field, and sets where its content stops. Returns the start of the content; NULL if the content
   is not complete before `end`. */
static inline Bytes
read_length(Bytes at, Bytes end, Bytes *stop)
{
    uint64_t size;
    at = read_varint(at, end, &size);
    if (at == NULL || size > (uint64_t)(end - at))
        return NULL;
    *stop = at + size;
    return at;
}

/* Sets a slot to a new reference, which it takes. Returns whether it failed. */
static inline int
fill(const State *state, PyObject *slot, PyObject *object, PyObject *content)
{
    int failed = content == NULL || state->set(slot, object, content) < 0;
    Py_XDECREF(content);
    return failed;
}

/* Makes an object with empty slots, which the cycle collector does not know. */
static inline PyObject *
make(PyTypeObject *type)
{
    PyObject *made = PyType_GenericAlloc(type, 0);
    if (made != NULL)
        PyObject_GC_UnTrack(made);
    return made;
}

/* Returns a key-value; NULL without an exception if its layout is another one. */
static PyObject *
read_key_value(const State *state, Bytes at, Bytes end)
{
    Bytes key = end, key_stop = end, value = end, value_stop = end;
    uint64_t numbers[KEY_VALUE_SLOTS] = {0};
    int last = 0;
    while (at < end) {
        int tag = *at++;
        if (tag <= last)
            return NULL;
        last = tag;
        switch (tag) {
        case LENGTH_FIELD(1):
            key = read_length(at, end, &key_stop);
            at = key == NULL ? NULL : key_stop;
            break;
        case VARINT_FIELD(2):
        case VARINT_FIELD(3):
        case VARINT_FIELD(4):
        case VARINT_FIELD(6):
            at = read_varint(at, end, &numbers[(tag >> 3) - 1]);
            break;
        case LENGTH_FIELD(5):
            value = read_length(at, end, &value_stop);
            at = value == NULL ? NULL : value_stop;
            break;
        default:
            return NULL;
        }
        if (at == NULL)
            return NULL;
    }
    PyObject *made = make(state->key_value);
    if (made == NULL)
        return NULL;
    for (int slot = 0; slot < KEY_VALUE_SLOTS; slot++) {
        PyObject *content;
        if (slot == KEY)
            content = PyBytes_FromStringAndSize((const char *)key, key_stop - key);
        else if (slot == VALUE)
            content = PyBytes_FromStringAndSize((const char *)value, value_stop - value);
        else
            content = PyLong_FromLongLong((int64_t)numbers[slot]);
        if (fill(state, state->key_value_slots[slot], made, content)) {
            Py_DECREF(made);
            return NULL;
        }
    }
    return made;
}

/* Returns an event; NULL without an exception if its layout is another one. */
static PyObject *
read_event(const State *state, Bytes at, Bytes end)
{
    PyObject *type = state->put, *kv, *prev_kv = NULL;
    Bytes stop;
    if (end - at > 1 && at[0] == VARINT_FIELD(1)) {
        if (at[1] > 1)
            return NULL;
        if (at[1] == 1)
            type = state->delete;
        at += 2;
    }
    if (at >= end || *at++ != LENGTH_FIELD(2) || (at = read_length(at, end, &stop)) == NULL)
        return NULL;
    kv = read_key_value(state, at, stop);
    if (kv == NULL)
        return NULL;
    if (stop < end) {
        at = stop;
        if (*at++ == LENGTH_FIELD(3) && (at = read_length(at, end, &stop)) != NULL && stop == end)
            prev_kv = read_key_value(state, at, stop);
        if (prev_kv == NULL) {
            Py_DECREF(kv);
            return NULL;
        }
    } else
        prev_kv = Py_NewRef(Py_None);
    PyObject *made = make(state->event);
    if (made == NULL) {
        Py_DECREF(kv);
        Py_DECREF(prev_kv);
        return NULL;
    }
    int failed = fill(state, state->event_slots[TYPE], made, Py_NewRef(type));
    failed |= fill(state, state->event_slots[KV], made, kv);
    failed |= fill(state, state->event_slots[PREV_KV], made, prev_kv);
    if (failed)
        Py_CLEAR(made);
    return made;
}

/* read(data, at, end, pause, cost, tag, items): appends items while they begin with `tag`, and at or before `pause`,
   which each item moves back by `cost`. Returns the position after the last one. */
static PyObject *
read_run(PyObject *module, PyObject *const *arguments, Py_ssize_t count, ReadItem read_item)
{
    const State *state = PyModule_GetState(module);
    if (count != 7 || !PyBytes_Check(arguments[0]) || !PyList_Check(arguments[6])) {
        PyErr_SetString(PyExc_TypeError, "read(data: bytes, at, end, pause, cost, tag, items: list)");
        return NULL;
    }
    /* A wrong length in the message may be larger than any size: `end` and `pause` are cut to the largest one. */
    Py_ssize_t end = PyNumber_AsSsize_t(arguments[2], NULL), pause = PyNumber_AsSsize_t(arguments[3], NULL);
    Py_ssize_t at = PyLong_AsSsize_t(arguments[1]), cost = PyLong_AsSsize_t(arguments[4]);
    long tag = PyLong_AsLong(arguments[5]);
    if (PyErr_Occurred())
        return NULL;
    if (at < 0 || state->key_value == NULL) {
        PyErr_SetString(PyExc_ValueError, at < 0 ? "a negative position" : "the classes are not set");
        return NULL;
    }
    Py_ssize_t size = PyBytes_Size(arguments[0]);
    if (end > size)
        end = size; /* a message that is cut short, which its decoder finds out */
    Bytes data = (Bytes)PyBytes_AsString(arguments[0]);
    while (at < end && at <= pause && data[at] == tag) {
        Bytes stop, start = read_length(data + at + 1, data + end, &stop);
        if (start == NULL)
            break;
        PyObject *item = read_item(state, start, stop);
        if (item == NULL) {
            if (PyErr_Occurred())
                return NULL;
            break;
        }
        int failed = PyList_Append(arguments[6], item);
        Py_DECREF(item);
        if (failed)
            return NULL;
        at = stop - data;
        pause -= cost;
    }
    return PyLong_FromSsize_t(at);
}

static PyObject *
read_key_values(PyObject *module, PyObject *const *arguments, Py_ssize_t count)
{
    return read_run(module, arguments, count, read_key_value);
}

static PyObject *
read_events(PyObject *module, PyObject *const *arguments, Py_ssize_t count)
{
    return read_run(module, arguments, count, read_event);
}

/* move_items(items, made, most): moves items from the end of a list into a tuple, which the first call puts into the
   empty list `made`. Returns how many are left.

   To make a tuple of a long list and then free the list is to write to every item twice, long after it was made. So it
   is done in steps, and each item is in the processor's cache the second time. The tuple is untracked as the items are:
   the collector would traverse it once to find out that it need not. */
static PyObject *
move_items(PyObject *module, PyObject *const *arguments, Py_ssize_t count)
{
    if (count != 3 || !PyList_Check(arguments[0]) || !PyList_Check(arguments[1])) {
        PyErr_SetString(PyExc_TypeError, "move_items(items: list, made: list, most)");
        return NULL;
    }
    PyObject *items = arguments[0], *made = arguments[1];
    Py_ssize_t most = PyLong_AsSsize_t(arguments[2]), left = PyList_Size(items);
    if (PyErr_Occurred())
        return NULL;
    if (most < 1) {
        PyErr_SetString(PyExc_ValueError, "no items to move");
        return NULL;
    }
    if (PyList_Size(made) == 0) {
        PyObject *empty = PyTuple_New(left);
        if (empty == NULL)
            return NULL;
        PyObject_GC_UnTrack(empty);
        int failed = PyList_Append(made, empty);
        Py_DECREF(empty);
        if (failed)
            return NULL;
    }
    PyObject *tuple = PyList_GetItem(made, 0);
    Py_ssize_t first = most < left ? left - most : 0;
    for (Py_ssize_t at = left; at > first; at--) {
        /* It raises SystemError if the tuple is none, too short, or referred to from elsewhere. */
        if (PyTuple_SetItem(tuple, at - 1, Py_NewRef(PyList_GetItem(items, at - 1))) < 0)
            return NULL;
    }
    if (PyList_SetSlice(items, first, left, NULL) < 0)
        return NULL;
    return PyLong_FromSsize_t(first);
}

/* Finds the descriptors of a class's slots. Returns -1, with an exception, if objects of the class cannot be filled. */
static int
find_slots(PyTypeObject *type, const char *const *names, PyObject **slots, int count)
{
    if (!(PyType_GetFlags(type) & Py_TPFLAGS_HAVE_GC)) { /* there would be nothing to untrack */
        PyErr_SetString(PyExc_TypeError, "a class without support for the cycle collector");
        return -1;
    }
    for (int i = 0; i < count; i++) {
        slots[i] = PyObject_GetAttrString((PyObject *)type, names[i]);
        if (slots[i] == NULL)
            return -1;
        if (!Py_IS_TYPE(slots[i], &PyMemberDescr_Type)) {
            PyErr_Format(PyExc_TypeError, "%s is not a slot", names[i]);
            return -1;
        }
    }
    return 0;
}

/* set_classes(KeyValue, Event, EventType.PUT, EventType.DELETE), once. */
static PyObject *
set_classes(PyObject *module, PyObject *arguments)
{
    State *state = PyModule_GetState(module);
    PyObject *key_value, *event, *put, *delete;
    if (!PyArg_ParseTuple(arguments, "O!O!OO", &PyType_Type, &key_value, &PyType_Type, &event, &put, &delete))
        return NULL;
    if (state->set != NULL) {
        PyErr_SetString(PyExc_ValueError, "the classes are set once");
        return NULL;
    }
    state->set = (descrsetfunc)PyType_GetSlot(&PyMemberDescr_Type, Py_tp_descr_set);
    if (find_slots((PyTypeObject *)key_value, key_value_names, state->key_value_slots, KEY_VALUE_SLOTS) ||
        find_slots((PyTypeObject *)event, event_names, state->event_slots, EVENT_SLOTS))
        return NULL;
    state->key_value = (PyTypeObject *)Py_NewRef(key_value);
    state->event = (PyTypeObject *)Py_NewRef(event);
    state->put = Py_NewRef(put);
    state->delete = Py_NewRef(delete);
    Py_RETURN_NONE;
}

static int
traverse(PyObject *module, visitproc visit, void *arg)
{
    State *state = PyModule_GetState(module);
    Py_VISIT(state->key_value);
    Py_VISIT(state->event);
    Py_VISIT(state->put);
    Py_VISIT(state->delete);
    for (int i = 0; i < KEY_VALUE_SLOTS; i++)
        Py_VISIT(state->key_value_slots[i]);
    for (int i = 0; i < EVENT_SLOTS; i++)
        Py_VISIT(state->event_slots[i]);
    return 0;
}

static int
clear(PyObject *module)
{
    State *state = PyModule_GetState(module);
    Py_CLEAR(state->key_value);
    Py_CLEAR(state->event);
    Py_CLEAR(state->put);
    Py_CLEAR(state->delete);
    for (int i = 0; i < KEY_VALUE_SLOTS; i++)
        Py_CLEAR(state->key_value_slots[i]);
    for (int i = 0; i < EVENT_SLOTS; i++)
        Py_CLEAR(state->event_slots[i]);
    return 0;
}

static void
deallocate(void *module)
{
    clear(module);
}

static PyMethodDef methods[] = {
    {"read_key_values", (PyCFunction)(void (*)(void))read_key_values, METH_FASTCALL, NULL},
    {"read_events", (PyCFunction)(void (*)(void))read_events, METH_FASTCALL, NULL},
    {"move_items", (PyCFunction)(void (*)(void))move_items, METH_FASTCALL, NULL},
    {"set_classes", set_classes, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

/* Without Py_mod_multiple_interpreters, which the limited API has from 3.12 on: an interpreter with a lock of its own
   refuses the module, and uses generated Python. */
static PyModuleDef_Slot slots[] = {{0, NULL}};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "etcd_aio.codec._speedups", NULL, sizeof(State), methods, slots, traverse, clear, deallocate,
};

PyMODINIT_FUNC
PyInit__speedups(void)
{
    return PyModuleDef_Init(&definition);
}
