"""Small programs that run inside Spark's JVM, put together from method handles over Py4J.

They let a JVM interface be implemented without a jar and without calls back into Python: Java's
own ``MethodHandles`` combine library methods (a queue's ``offer``, a semaphore's ``tryAcquire``)
into one handle, and ``Proxy`` makes an interface of it. The stream-execution thread of a query
then blocks in plain Java: it costs nothing while it waits and ``query.stop()`` interrupts it.
"""

from typing import Any

from pyspark.sql import SparkSession

from slackwater.engines.spark.session.versions import engine_package

JavaObject = Any  # Py4J objects have no static type


class Handles:
    """Builds method handles in the JVM of a session."""

    def __init__(self, spark: SparkSession) -> None:
        context: JavaObject = spark.sparkContext
        self._gateway = context._gateway
        self.java = self._gateway.jvm.java
        self.spark = self._gateway.jvm.org.apache.spark
        self._engine = engine_package(self._gateway.jvm)
        self._factory = self.java.lang.invoke.MethodHandles
        self._lookup = self._factory.publicLookup()
        self._no_arguments = self.java.util.ArrayList()
        self.object = self.type("java.lang.Object")
        self.objects = self.type("[Ljava.lang.Object;")
        self.bool = self.java.lang.Boolean.TYPE
        self.int = self.java.lang.Integer.TYPE
        self.long = self.java.lang.Long.TYPE
        self.void = self.java.lang.Void.TYPE

    def type(self, name: str) -> JavaObject:
        """Return a class; one without a package is private to Spark's streaming engine."""
        whole = name if "." in name else f"{self._engine}.{name}"
        return self.java.lang.Class.forName(whole)

    def array(self, component: JavaObject, *values: JavaObject) -> JavaObject:
        array = self._gateway.new_array(component, len(values))
        for index, value in enumerate(values):
            array[index] = value
        return array

    def signature(self, returns: JavaObject, *takes: JavaObject) -> JavaObject:
        types = self.array(self.java.lang.Class, *takes)
        return self.java.lang.invoke.MethodType.methodType(returns, types)

    # -- handles --------------------------------------------------------------------------------

    def method(
        self, owner: str, name: str, returns: JavaObject, *takes: JavaObject, of: JavaObject
    ) -> JavaObject:
        """Return a method of one object: ``of`` is bound."""
        return self.virtual(owner, name, returns, *takes).bindTo(of)

    def virtual(self, owner: str, name: str, returns: JavaObject, *takes: JavaObject) -> JavaObject:
        """Return a method of any object, which is its first argument."""
        return self._lookup.findVirtual(self.type(owner), name, self.signature(returns, *takes))

    def constructor(self, owner: str, *takes: JavaObject) -> JavaObject:
        kind = self.type(owner)
        return self._lookup.findConstructor(kind, self.signature(self.void, *takes))

    def static(self, owner: str, name: str, returns: JavaObject, *takes: JavaObject) -> JavaObject:
        return self._lookup.findStatic(self.type(owner), name, self.signature(returns, *takes))

    def getter(self, owner: str, field: str) -> JavaObject:
        """Return a field of any object, which is its argument, whoever may see it."""
        declared = self.type(owner).getDeclaredField(field)
        declared.setAccessible(True)
        return self._lookup.unreflectGetter(declared)

    def returning(self, handle: JavaObject, kind: JavaObject) -> JavaObject:
        """Return the same handle with its result converted, or thrown away for ``void``."""
        return handle.asType(handle.type().changeReturnType(kind))

    def number(self, reference: JavaObject) -> JavaObject:
        """Return the ``long`` in an ``AtomicReference`` (Py4J makes an ``AtomicLong`` an int)."""
        number = self.type("java.lang.Number")
        value = self._lookup.findVirtual(number, "longValue", self.signature(self.long))
        owner = "java.util.concurrent.atomic.AtomicReference"
        get = self.returning(self.method(owner, "get", self.object, of=reference), number)
        return self._factory.filterReturnValue(get, value)

    def first_argument(self, kind: JavaObject) -> JavaObject:
        """Return ``(Object[] arguments) → arguments[0]``."""
        element = self._factory.arrayElementGetter(self.objects)
        index = self.array(self.java.lang.Object, 0)
        return self.returning(self._factory.insertArguments(element, 1, index), kind)

    def insert(self, handle: JavaObject, position: int, value: JavaObject) -> JavaObject:
        values = self.array(self.java.lang.Object, value)
        return self._factory.insertArguments(handle, position, values)

    def collect(self, handle: JavaObject, argument: JavaObject, position: int = 0) -> JavaObject:
        """Compute an argument of ``handle``, by default the first, by ``argument``."""
        return self._factory.collectArguments(handle, position, argument)

    def fold(self, handle: JavaObject, first: JavaObject) -> JavaObject:
        """Compute the first argument of ``handle`` once, for all of its steps."""
        return self._factory.foldArguments(handle, first)

    def then(self, *steps: JavaObject) -> JavaObject:
        """Run the steps in order on the same arguments; the last one's result counts."""
        *before, result = steps
        for step in reversed(before):
            result = self._factory.foldArguments(result, self.returning(step, self.void))
        return result

    def ignoring(self, handle: JavaObject, *kinds: JavaObject, position: int = 0) -> JavaObject:
        """Return the same handle, taking (and ignoring) further arguments, by default in front."""
        kinds = self.array(self.java.lang.Class, *kinds)
        return self._factory.dropArguments(handle, position, kinds)

    def choose(self, test: JavaObject, yes: JavaObject, no: JavaObject) -> JavaObject:
        return self._factory.guardWithTest(test, yes, no)

    def on_interrupt(self, handle: JavaObject, instead: JavaObject) -> JavaObject:
        """Have ``instead`` (no arguments) give the result when the thread was interrupted."""
        interrupted = self.type("java.lang.InterruptedException")
        return self._factory.catchException(
            handle, interrupted, self.ignoring(instead, interrupted)
        )

    def text(self, *parts: JavaObject) -> JavaObject:
        """Return ``() → String``: what the parts return, as a Java list prints it."""
        kind = self.type("java.util.List")
        found = self.static("java.util.Arrays", "asList", kind, self.objects)
        found = self.returning(found.asCollector(self.objects, len(parts)), self.object)
        string = self.type("java.lang.String")
        line = self.static("java.util.Objects", "toString", string, self.object)
        line = self.collect(line, found)
        for part in parts:
            line = self.collect(line, self.returning(part, self.object))
        return line

    def call(self, handle: JavaObject) -> JavaObject:
        """Call a handle without arguments."""
        return handle.invokeWithArguments(self._no_arguments)

    def on_error(self, handle: JavaObject, instead: str) -> JavaObject:
        """Have a handle without arguments give a text when it fails."""
        failed = self.type("java.lang.Exception")
        constant = self._factory.constant(self.object, instead)
        return self._factory.catchException(
            self.returning(handle, self.object), failed, self.ignoring(constant, failed)
        )

    def implement(self, interface: str, handle: JavaObject) -> JavaObject:
        """Make an object whose every method calls ``handle(Object[] arguments) → Object``.

        ``arguments`` is null for methods without parameters.
        """
        reflect = self.java.lang.reflect
        whole = self.ignoring(handle, self.object, self.type("java.lang.reflect.Method"))
        invoker = self.java.lang.invoke.MethodHandleProxies.asInterfaceInstance(
            self.type("java.lang.reflect.InvocationHandler"), whole
        )
        kind = self.type(interface)
        kinds = self.array(self.java.lang.Class, kind)
        return reflect.Proxy.newProxyInstance(kind.getClassLoader(), kinds, invoker)

    def nothing(self) -> JavaObject:
        """Return ``() → null``."""
        return self._factory.constant(self.object, None)
