/* Reads runs of key-values and events, and small replies, that are laid out as etcd writes them; computes CRC-32C.

   A reader of runs appends the items that it can read to a list, and returns the position of the first that it cannot;
   a reader of replies returns None for one that it cannot read. The decoder in Python reads those. So malformed bytes
   are never judged here, and only MemoryError is raised for data.

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
enum { CLUSTER_ID, MEMBER_ID, REVISION, RAFT_TERM, HEADER_SLOTS };
enum { RANGE_HEADER, RANGE_KVS, RANGE_MORE, RANGE_COUNT, RANGE_SLOTS };
enum { PUT_HEADER, PUT_PREV_KV, PUT_SLOTS };
static const char *const key_value_names[] = {"key", "create_revision", "mod_revision", "version", "value", "lease"};
static const char *const event_names[] = {"type", "kv", "prev_kv"};
static const char *const header_names[] = {"cluster_id", "member_id", "revision", "raft_term"};
static const char *const range_names[] = {"header", "kvs", "more", "count"};
static const char *const put_names[] = {"header", "prev_kv"};

/* The tags of the fields: the number, and whether a varint (0) or a length (2) follows. */
#define VARINT_FIELD(number) ((number) << 3)
#define LENGTH_FIELD(number) ((number) << 3 | 2)

/* A class whose objects are made here, and the descriptors of its slots. */
#define MOST_SLOTS KEY_VALUE_SLOTS
typedef struct {
    PyTypeObject *type;
    PyObject *slots[MOST_SLOTS];
    int count;
} Class;

enum { KEY_VALUE_CLASS, EVENT_CLASS, HEADER_CLASS, RANGE_CLASS, PUT_CLASS, CLASSES };
static const char *const *const names_of[CLASSES] = {key_value_names, event_names, header_names, range_names, put_names};
static const int counts[CLASSES] = {KEY_VALUE_SLOTS, EVENT_SLOTS, HEADER_SLOTS, RANGE_SLOTS, PUT_SLOTS};

typedef struct {
    Class classes[CLASSES];
    descrsetfunc set; /* of every slot's descriptor */
    PyObject *put, *delete;
} State;

/* The last revision that was read: the items of one revision share one object. */
typedef struct {
    uint64_t number;
    PyObject *object;
} Revision;

typedef const unsigned char *Bytes;
typedef PyObject *(*ReadItem)(const State *, Bytes, Bytes, Revision *);

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

/* Makes an object of a class from new references, which it takes, and drops also if one of them is NULL. The cycle
   collector does not know the object. */
static inline PyObject *
make(const State *state, int class, PyObject *const *contents)
{
    const Class *wanted = &state->classes[class];
    PyObject *made = PyType_GenericAlloc(wanted->type, 0);
    int failed = made == NULL;
    if (!failed)
        PyObject_GC_UnTrack(made);
    for (int slot = 0; slot < wanted->count; slot++) {
        PyObject *content = contents[slot];
        failed = failed || content == NULL || state->set(wanted->slots[slot], made, content) < 0;
        Py_XDECREF(content);
    }
    if (failed)
        Py_CLEAR(made);
    return made;
}

static inline PyObject *
revision_of(Revision *last, uint64_t number)
{
    if (last->object == NULL || last->number != number) {
        Py_XDECREF(last->object);
        last->object = PyLong_FromLongLong((int64_t)number);
        last->number = number;
    }
    return Py_XNewRef(last->object);
}

/* Returns a key-value; NULL without an exception if its layout is another one. */
static PyObject *
read_key_value(const State *state, Bytes at, Bytes end, Revision *last_revision)
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
    PyObject *modified = revision_of(last_revision, numbers[MOD_REVISION]);
    PyObject *created = numbers[CREATE_REVISION] == numbers[MOD_REVISION]
                            ? Py_XNewRef(modified)
                            : PyLong_FromLongLong((int64_t)numbers[CREATE_REVISION]);
    PyObject *contents[KEY_VALUE_SLOTS] = {
        PyBytes_FromStringAndSize((const char *)key, key_stop - key),
        created,
        modified,
        PyLong_FromLongLong((int64_t)numbers[VERSION]),
        PyBytes_FromStringAndSize((const char *)value, value_stop - value),
        PyLong_FromLongLong((int64_t)numbers[LEASE]),
    };
    return make(state, KEY_VALUE_CLASS, contents);
}

/* Returns an event; NULL without an exception if its layout is another one. */
static PyObject *
read_event(const State *state, Bytes at, Bytes end, Revision *last_revision)
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
    kv = read_key_value(state, at, stop, last_revision);
    if (kv == NULL)
        return NULL;
    if (stop < end) {
        at = stop;
        if (*at++ == LENGTH_FIELD(3) && (at = read_length(at, end, &stop)) != NULL && stop == end)
            prev_kv = read_key_value(state, at, stop, last_revision);
        if (prev_kv == NULL) {
            Py_DECREF(kv);
            return NULL;
        }
    } else
        prev_kv = Py_NewRef(Py_None);
    PyObject *contents[EVENT_SLOTS] = {Py_NewRef(type), kv, prev_kv};
    return make(state, EVENT_CLASS, contents);
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
    if (at < 0 || state->set == NULL) {
        PyErr_SetString(PyExc_ValueError, at < 0 ? "a negative position" : "the classes are not set");
        return NULL;
    }
    Py_ssize_t size = PyBytes_Size(arguments[0]);
    if (end > size)
        end = size; /* a message that is cut short, which its decoder finds out */
    Bytes data = (Bytes)PyBytes_AsString(arguments[0]);
    Revision last_revision = {0, NULL};
    while (at < end && at <= pause && data[at] == tag) {
        Bytes stop, start = read_length(data + at + 1, data + end, &stop);
        if (start == NULL)
            break;
        PyObject *item = read_item(state, start, stop, &last_revision);
        if (item == NULL)
            break; /* with an exception if there is no memory */
        int failed = PyList_Append(arguments[6], item);
        Py_DECREF(item);
        if (failed)
            break;
        at = stop - data;
        pause -= cost;
    }
    Py_XDECREF(last_revision.object);
    return PyErr_Occurred() ? NULL : PyLong_FromSsize_t(at);
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
        /* Of None, until the items are there: debuggers and reporters of errors read the variables of a decoder. */
        PyObject *none = PyTuple_Pack(1, Py_None);
        PyObject *whole = none == NULL ? NULL : PySequence_Repeat(none, left);
        Py_XDECREF(none);
        if (whole == NULL)
            return NULL;
        if (left > 0) /* the empty one belongs to Python */
            PyObject_GC_UnTrack(whole);
        int failed = PyList_Append(made, whole);
        Py_DECREF(whole);
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

/* Returns a response header; NULL without an exception if its layout is another one. */
static PyObject *
read_header(const State *state, Bytes at, Bytes end)
{
    uint64_t numbers[HEADER_SLOTS] = {0};
    int last = 0;
    while (at < end) {
        int tag = *at++;
        if (tag <= last || tag % VARINT_FIELD(1) || tag > VARINT_FIELD(HEADER_SLOTS))
            return NULL;
        last = tag;
        if ((at = read_varint(at, end, &numbers[(tag >> 3) - 1])) == NULL)
            return NULL;
    }
    PyObject *contents[HEADER_SLOTS] = {
        PyLong_FromUnsignedLongLong(numbers[CLUSTER_ID]),
        PyLong_FromUnsignedLongLong(numbers[MEMBER_ID]),
        PyLong_FromLongLong((int64_t)numbers[REVISION]),
        PyLong_FromUnsignedLongLong(numbers[RAFT_TERM]),
    };
    return make(state, HEADER_CLASS, contents);
}

/* Reads the header with which a reply begins, and moves `at` behind it. */
static PyObject *
read_first_header(const State *state, Bytes *at, Bytes end)
{
    Bytes start, stop;
    if (*at >= end || **at != LENGTH_FIELD(1) || (start = read_length(*at + 1, end, &stop)) == NULL)
        return NULL;
    *at = stop;
    return read_header(state, start, stop);
}

/* Moves the items of a list into a tuple, which the cycle collector does not know. */
static PyObject *
tuple_of(PyObject *items)
{
    PyObject *tuple = PyList_AsTuple(items);
    if (tuple != NULL && PyTuple_Size(tuple) > 0) /* the empty one belongs to Python */
        PyObject_GC_UnTrack(tuple);
    return tuple;
}

/* Reads the key-values that come next, with this tag, and moves `at` behind them. NULL, perhaps without an exception,
   if the layout of one is another one. */
static PyObject *
read_all_key_values(const State *state, int tag, Bytes *at, Bytes end)
{
    PyObject *items = PyList_New(0);
    Revision last_revision = {0, NULL};
    while (items != NULL && *at < end && **at == tag) {
        Bytes stop = end, start = read_length(*at + 1, end, &stop);
        PyObject *item = start == NULL ? NULL : read_key_value(state, start, stop, &last_revision);
        if (item == NULL || PyList_Append(items, item) < 0)
            Py_CLEAR(items);
        Py_XDECREF(item);
        *at = stop;
    }
    Py_XDECREF(last_revision.object);
    PyObject *tuple = items == NULL ? NULL : tuple_of(items);
    Py_XDECREF(items);
    return tuple;
}

typedef PyObject *(*ReadReply)(const State *, Bytes, Bytes);

static PyObject *
read_range_reply(const State *state, Bytes at, Bytes end)
{
    uint64_t more = 0, number = 0;
    PyObject *header = read_first_header(state, &at, end);
    PyObject *kvs = header == NULL ? NULL : read_all_key_values(state, LENGTH_FIELD(2), &at, end);
    if (kvs != NULL && at < end && *at == VARINT_FIELD(3))
        at = read_varint(at + 1, end, &more);
    if (kvs != NULL && at != NULL && at < end && *at == VARINT_FIELD(4))
        at = read_varint(at + 1, end, &number);
    if (kvs == NULL || at != end || more > 1) {
        Py_XDECREF(header);
        Py_XDECREF(kvs);
        return NULL;
    }
    PyObject *contents[RANGE_SLOTS] = {
        header, kvs, PyBool_FromLong((long)more), PyLong_FromLongLong((int64_t)number)};
    return make(state, RANGE_CLASS, contents);
}

static PyObject *
read_put_reply(const State *state, Bytes at, Bytes end)
{
    Bytes start, stop;
    Revision revision = {0, NULL};
    PyObject *header = read_first_header(state, &at, end), *prev_kv = NULL;
    if (header != NULL && at == end)
        prev_kv = Py_NewRef(Py_None);
    else if (header != NULL && *at == LENGTH_FIELD(2) && (start = read_length(at + 1, end, &stop)) && stop == end)
        prev_kv = read_key_value(state, start, stop, &revision);
    Py_XDECREF(revision.object);
    if (prev_kv == NULL) {
        Py_XDECREF(header);
        return NULL;
    }
    PyObject *contents[PUT_SLOTS] = {header, prev_kv};
    return make(state, PUT_CLASS, contents);
}

/* read(data, at, end) -> the reply between these positions; None if its layout is another one. */
static PyObject *
read_reply(PyObject *module, PyObject *const *arguments, Py_ssize_t count, ReadReply read)
{
    const State *state = PyModule_GetState(module);
    if (count != 3 || !PyBytes_Check(arguments[0]) || state->set == NULL) {
        PyErr_SetString(PyExc_TypeError, "read(data: bytes, at, end), after the classes are set");
        return NULL;
    }
    /* A wrong length in a message around it may be larger than any size: `end` is cut to the largest one. */
    Py_ssize_t at = PyLong_AsSsize_t(arguments[1]), end = PyNumber_AsSsize_t(arguments[2], NULL);
    if (PyErr_Occurred())
        return NULL;
    if (at < 0 || end < at || end > PyBytes_Size(arguments[0]))
        Py_RETURN_NONE;
    Bytes data = (Bytes)PyBytes_AsString(arguments[0]);
    PyObject *reply = read(state, data + at, data + end);
    if (reply == NULL && !PyErr_Occurred())
        Py_RETURN_NONE;
    return reply;
}

static PyObject *
read_range(PyObject *module, PyObject *const *arguments, Py_ssize_t count)
{
    return read_reply(module, arguments, count, read_range_reply);
}

static PyObject *
read_put(PyObject *module, PyObject *const *arguments, Py_ssize_t count)
{
    return read_reply(module, arguments, count, read_put_reply);
}

/* The tables of CRC-32C: `crc_tables[n][byte]` is the checksum of a byte that n bytes of zero follow. */
static uint32_t crc_tables[8][256];

static void
make_crc_tables(void)
{
    for (uint32_t byte = 0; byte < 256; byte++) {
        uint32_t crc = byte;
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78 : 0);
        crc_tables[0][byte] = crc;
    }
    for (int table = 1; table < 8; table++)
        for (int byte = 0; byte < 256; byte++) {
            uint32_t crc = crc_tables[table - 1][byte];
            crc_tables[table][byte] = crc >> 8 ^ crc_tables[0][crc & 0xff];
        }
}

/* crc32c(data, before) -> the checksum of what `before` is that of, with the data behind it. Eight bytes a step. */
static PyObject *
crc32c(PyObject *module, PyObject *const *arguments, Py_ssize_t count)
{
    Py_buffer buffer;
    if (count != 2) {
        PyErr_SetString(PyExc_TypeError, "crc32c(data, before)");
        return NULL;
    }
    uint32_t crc = ~(uint32_t)PyLong_AsUnsignedLongMask(arguments[1]);
    if (PyErr_Occurred() || PyObject_GetBuffer(arguments[0], &buffer, PyBUF_SIMPLE) < 0)
        return NULL;
    Bytes at = buffer.buf, end = at + buffer.len;
    for (; end - at >= 8; at += 8) {
        crc ^= at[0] | at[1] << 8 | at[2] << 16 | (uint32_t)at[3] << 24;
        crc = crc_tables[7][crc & 0xff] ^ crc_tables[6][crc >> 8 & 0xff] ^ crc_tables[5][crc >> 16 & 0xff] ^
              crc_tables[4][crc >> 24] ^ crc_tables[3][at[4]] ^ crc_tables[2][at[5]] ^ crc_tables[1][at[6]] ^
              crc_tables[0][at[7]];
    }
    for (; at < end; at++)
        crc = crc_tables[0][(crc ^ *at) & 0xff] ^ crc >> 8;
    PyBuffer_Release(&buffer);
    return PyLong_FromUnsignedLong(~crc & 0xffffffff);
}

/* Finds the descriptors of a class's slots. Returns -1, with an exception, if objects of the class cannot be filled. */
static int
use_class(Class *class, PyObject *type, const char *const *names, int count)
{
    if (!(PyType_GetFlags((PyTypeObject *)type) & Py_TPFLAGS_HAVE_GC)) { /* there would be nothing to untrack */
        PyErr_SetString(PyExc_TypeError, "a class without support for the cycle collector");
        return -1;
    }
    for (class->count = 0; class->count < count; class->count++) {
        PyObject *slot = PyObject_GetAttrString(type, names[class->count]);
        if (slot == NULL)
            return -1;
        class->slots[class->count] = slot;
        if (!Py_IS_TYPE(slot, &PyMemberDescr_Type)) {
            class->count++;
            PyErr_Format(PyExc_TypeError, "%s is not a slot", names[class->count - 1]);
            return -1;
        }
    }
    class->type = (PyTypeObject *)Py_NewRef(type);
    return 0;
}

/* set_classes(EventType.PUT, EventType.DELETE, KeyValue, Event, Header, RangeResult, PutResult), once. */
static PyObject *
set_classes(PyObject *module, PyObject *const *arguments, Py_ssize_t count)
{
    State *state = PyModule_GetState(module);
    if (count != 2 + CLASSES || state->put != NULL) {
        PyErr_SetString(PyExc_ValueError, "set_classes(put, delete, class, ...) once, with every class");
        return NULL;
    }
    state->put = Py_NewRef(arguments[0]);
    state->delete = Py_NewRef(arguments[1]);
    for (int i = 0; i < CLASSES; i++) {
        if (!PyType_Check(arguments[2 + i])) {
            PyErr_SetString(PyExc_TypeError, "not a class");
            return NULL;
        }
        if (use_class(&state->classes[i], arguments[2 + i], names_of[i], counts[i]) < 0)
            return NULL;
    }
    state->set = (descrsetfunc)PyType_GetSlot(&PyMemberDescr_Type, Py_tp_descr_set);
    Py_RETURN_NONE;
}

static int
traverse(PyObject *module, visitproc visit, void *arg)
{
    State *state = PyModule_GetState(module);
    Py_VISIT(state->put);
    Py_VISIT(state->delete);
    for (int i = 0; i < CLASSES; i++) {
        Py_VISIT(state->classes[i].type);
        for (int slot = 0; slot < state->classes[i].count; slot++)
            Py_VISIT(state->classes[i].slots[slot]);
    }
    return 0;
}

static int
clear(PyObject *module)
{
    State *state = PyModule_GetState(module);
    state->set = NULL; /* nothing is read any more */
    Py_CLEAR(state->put);
    Py_CLEAR(state->delete);
    for (int i = 0; i < CLASSES; i++) {
        Py_CLEAR(state->classes[i].type);
        for (int slot = 0; slot < state->classes[i].count; slot++)
            Py_CLEAR(state->classes[i].slots[slot]);
    }
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
    {"read_range", (PyCFunction)(void (*)(void))read_range, METH_FASTCALL, NULL},
    {"read_put", (PyCFunction)(void (*)(void))read_put, METH_FASTCALL, NULL},
    {"crc32c", (PyCFunction)(void (*)(void))crc32c, METH_FASTCALL, NULL},
    {"set_classes", (PyCFunction)(void (*)(void))set_classes, METH_FASTCALL, NULL},
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
    make_crc_tables();
    return PyModuleDef_Init(&definition);
}
